(I | i("+kj~kj|j:48|jkj'")) >> i("ik*kj~kij|i:8,j:48|j1iki'j'") >> i("+kij~ij|i:8,j:48|jiki'j'0")
