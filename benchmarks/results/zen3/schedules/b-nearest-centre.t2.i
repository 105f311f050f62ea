i("+ik~ki|i:128,k:8|ikk'i'") >> i("ki-jk~kji|i:8:16,j:6|i0ji'kj'i''") >> (I & I) >> i("kji*kji~kji|i:8:16,j:6|iji'kj'i''01") >> i("+kji~ji|i:8:16,j:6|iji'kj'i''0") >> i("<ji~i|i:128,j:6|ij0j'i'")
