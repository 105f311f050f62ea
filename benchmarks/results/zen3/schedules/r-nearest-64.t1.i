i("+ik~ki|i:16|iki'") >> i("ki-jk~kji|i:16,j:6|i0jkj'i'") >> (I & I) >> i("kji*kji~kji|i:16,j:6|ijkj'i'01") >> i("+kji~ji|i:16,j:6|ijkj'i'0") >> i("<ji~i|i:16,j:6|ij0j'i'") >> i("i^0.5~i|i:16|i0i'")
