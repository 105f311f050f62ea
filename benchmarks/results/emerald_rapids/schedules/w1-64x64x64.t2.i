i("ik*kj~kij|i:8:4,j:64|iji'ki''j'") >> i("+kij~ij|i:8:4,j:64|iji'ki''j'0")
