(I & (I & I) >> i("ij*ij~ij|j:96|") >> i("+ij~i|j:96|ijj'0") >> i("i/1024~i||i0") >> i("i+1e-5~i||i0") >> i("i^0.5~i||i0")) >> i("ij/i~ij||i1j") >> i("ij*j~ij||ij0")
