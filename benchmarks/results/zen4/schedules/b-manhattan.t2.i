(I | i("+jk~kj|j:64|jkj'")) >> i("ik-kj~kij|i:4,j:64|j1iki'j'") >> (I & i("-kij~kij|i:4,j:64|jiki'j'0")) >> i("kij>kij~kij|i:4,j:64|jiki'j'01") >> i("+kij~ij|i:4,j:64|jiki'j'0")
