(I | i("+kj~kj|j:96|jkj'")) >> i("ik*kj~kij|i:4,j:96|j1iki'j'") >> i("+kij~ij|i:4,j:96|jiki'j'0")
