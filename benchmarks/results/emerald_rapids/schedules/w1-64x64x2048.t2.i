(I | i("+kj~kj|j:32|jkj'")) >> i("ik*kj~kij|i:8,j:32|j1iki'j'") >> i("+kij~ij|i:8,j:32|jiki'j'0")
