(I | i("+jk~kj|j:48,k:16|jkk'j'")) >> ~i("kj+ik~kij|i:8,j:48|j0iki'j'") >> i(">kij~ij|i:8,j:48|jiki'j'0")
