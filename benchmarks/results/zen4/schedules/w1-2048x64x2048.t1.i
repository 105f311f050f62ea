(I | i("+kj~kj|j:96|jkj'")) >> i("ik*kj~kij|i:2:4,j:96|j1ii'ki''j'") >> i("+kij~ij|i:2:4,j:96|jii'ki''j'0")
