i("+ik~ki|i:48|iki'") >> i("ki-jk~kji|i:48,j:8|i0jkj'i'") >> (I & I) >> i("kji*kji~kji|i:48,j:8|ijkj'i'01") >> i("+kji~ji|i:48,j:8|ijkj'i'0") >> i("<ji~i|i:48,j:8|ij0j'i'") >> i("i^0.5~i|i:48|i0i'")
