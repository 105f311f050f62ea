(I | i("+kj~kj|j:32|jkj'")) >> i("ik*kj~kij|i:8:12,j:32|j1ii'ki''j'") >> i("+kij~ij|i:8:12,j:32|jii'ki''j'0")
