i("ik*kj~kij|i:8:6,j:16|iji'ki''j'") >> i("+kij~ij|i:8:6,j:16|iji'ki''j'0")
