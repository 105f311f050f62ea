(I | i("+jk~kj|j:64|jkj'")) >> i("ik-kj~kij|i:6,j:64|j1iki'j'") >> (I & I) >> i("kij*kij~kij|i:6,j:64|jiki'j'01") >> i("+kij~ij|i:6,j:64|jiki'j'0")
