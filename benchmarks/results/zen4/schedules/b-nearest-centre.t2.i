i("+ik~ki|i:48,k:8|ikk'i'") >> i("ki-jk~kji|i:48,j:8,k:8|ik0jk'j'i'") >> (I & I) >> i("kji*kji~kji|i:48,j:8,k:8|ikjk'j'i'01") >> i("+kji~ji|i:48,j:8,k:8|ikjk'j'i'0") >> i("<ji~i|i:48,j:8|i0jj'i'")
