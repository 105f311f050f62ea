(I | i("+kj~kj|j:16|jkj'")) >> i("ik*kj~kij|i:6,j:16|j1iki'j'") >> i("+kij~ij|i:6,j:16|jiki'j'0")
