i("ik*kj~kij|i:16:6,j:64|iji'ki''j'") >> i("+kij~ij|i:16:6,j:64|iji'ki''j'0")
