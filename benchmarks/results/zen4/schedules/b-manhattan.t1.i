(I | i("+jk~kj|j:96|jkj'")) >> i("ik-kj~kij|i:2:4,j:96|j1ii'ki''j'") >> (I & i("-kij~kij|i:2:4,j:96|jii'ki''j'0")) >> i("kij>kij~kij|i:2:4,j:96|jii'ki''j'01") >> i("+kij~ij|i:2:4,j:96|jii'ki''j'0")
