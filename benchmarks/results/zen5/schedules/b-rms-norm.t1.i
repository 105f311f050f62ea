(I & (I & I) >> i("ij*ij~ij") >> i("+ij~i||ij0") >> i("i/1024~i||i0") >> i("i+1e-5~i||i0") >> i("i^0.5~i||i0")) >> i("ij/i~ij||ij1") >> i("ij*j~ij||ij0")
