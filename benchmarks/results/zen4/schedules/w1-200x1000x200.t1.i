(I | i("+kj~kj|j:32|jkj'")) >> i("ik*kj~kij|i:32:8,j:32|j1ii'ki''j'") >> i("+kij~ij|i:32:8,j:32|jii'ki''j'0")
