i("ik*kj~kij|i:4:12,j:32|iji'ki''j'") >> i("+kij~ij|i:4:12,j:32|iji'ki''j'0")
