i("ik*kj~kij|i:2:6,j:48|iji'ki''j'") >> i("+kij~ij|i:2:6,j:48|iji'ki''j'0")
