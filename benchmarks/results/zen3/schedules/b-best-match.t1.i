i("+ik~ki|i:16|iki'") >> ~i("jk*ki~kji|i:16,j:6|i1jkj'i'") >> i("+kji~ji|i:16,j:6|ijkj'i'0") >> i(">ji~i|i:16,j:6|ij0j'i'")
