(I | i("+kj~kj|j:48|jkj'")) >> i("ik*kj~kij|i:2:8,j:48|j1ii'ki''j'") >> i("+kij~ij|i:2:8,j:48|jii'ki''j'0")
