(I & i("+ij~i|j:128|") >> i("i/4096~i||i0")) >> i("ij-i~ij||i1j") >> (I & I) >> i("ij*ij~ij||ij01") >> i("+ij~i||ij0") >> i("i/4096~i||i0")
