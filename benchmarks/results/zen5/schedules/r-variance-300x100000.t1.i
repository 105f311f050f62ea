(I & i("+ij~i") >> i("i/100000~i||i0")) >> i("ij-i~ij||i1j") >> (I & I) >> i("ij*ij~ij||ij01") >> i("+ij~i||ij0") >> i("i/100000~i||i0")
