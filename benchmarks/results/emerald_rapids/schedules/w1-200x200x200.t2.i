i("ik*kj~kij|i:16:8,j:48|iji'ki''j'") >> i("+kij~ij|i:16:8,j:48|iji'ki''j'0")
