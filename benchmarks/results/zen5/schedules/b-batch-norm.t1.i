(I & i("+ij~j||ij") >> i("j/8192~j")) >> i("ij-j~ij") >> (I & (I & I) >> i("ij*ij~ij||ij01") >> i("+ij~j||ij0") >> i("j/8192~j") >> i("j+1e-5~j||j0") >> i("j^0.5~j||j0")) >> i("ij/j~ij||ij0")
