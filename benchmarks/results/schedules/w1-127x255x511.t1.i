i("ik*kj~kij|i:16:8,j:32|jii'ki''j'") >> i("+kij~ij|i:16:8,j:32|jii'ki''j'0")
