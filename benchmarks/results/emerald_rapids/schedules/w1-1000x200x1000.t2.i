(I | i("+kj~kj|j:64|jkj'")) >> i("ik*kj~kij|i:2:6,j:64|j1ii'ki''j'") >> i("+kij~ij|i:2:6,j:64|jii'ki''j'0")
