i("+ik~ki|i:96|iki'") >> i("ki-jk~kji|i:96,j:4|i0jkj'i'") >> (I & I) >> i("kji*kji~kji|i:96,j:4|ijkj'i'01") >> i("+kji~ji|i:96,j:4|ijkj'i'0") >> i("<ji~i|i:96,j:4|ij0j'i'") >> i("i^0.5~i|i:96|i0i'")
