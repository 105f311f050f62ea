(I | i("+kj~kj|j:64|jkj'")) >> i("ik*kj~kij|i:6,j:64|j1iki'j'") >> i("+kij~ij|i:6,j:64|jiki'j'0")
