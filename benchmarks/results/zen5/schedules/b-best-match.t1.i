i("+ik~ki|i:48|iki'") >> ~i("jk*ki~kji|i:48,j:8|i1jkj'i'") >> i("+kji~ji|i:48,j:8|ijkj'i'0") >> i(">ji~i|i:48,j:8|ij0j'i'")
