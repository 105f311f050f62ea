i("+ik~ki|i:64|iki'") >> i("ki-jk~kji|i:64,j:6|i0jkj'i'") >> (I & I) >> i("kji*kji~kji|i:64,j:6|ijkj'i'01") >> i("+kji~ji|i:64,j:6|ijkj'i'0") >> i("<ji~i|i:64,j:6|ij0j'i'") >> i("i^0.5~i|i:64|i0i'")
