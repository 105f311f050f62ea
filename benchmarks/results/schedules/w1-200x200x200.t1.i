i("ik*kj~kij|i:32:8,j:32|iji'ki''j'") >> i("+kij~ij|i:32:8,j:32|iji'ki''j'0")
