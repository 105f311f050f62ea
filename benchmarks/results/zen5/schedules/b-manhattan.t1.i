(I | i("+jk~kj|j:96|jkj'")) >> (i("ik-kj~kij|i:4,j:96|j1iki'j'") & ~i("kj-ik~kij|i:4,j:96|j0iki'j'")) >> i("kij>kij~kij|i:4,j:96|jiki'j'01") >> i("+kij~ij|i:4,j:96|jiki'j'0")
