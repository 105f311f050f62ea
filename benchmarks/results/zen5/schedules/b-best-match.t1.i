i("+ik~ki|i:64|iki'") >> ~i("jk*ki~kji|i:64,j:6|i1jkj'i'") >> i("+kji~ji|i:64,j:6|ijkj'i'0") >> i(">ji~i|i:64,j:6|ij0j'i'")
