(I & i("+kj~kj|j:32|jkj'")) >> i("ki*kj~kij|i:12,j:32|j1iki'j'") >> i("+kij~ij|i:12,j:32|jiki'j'0")
