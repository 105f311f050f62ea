i("ik*kj~kij|i:8:6,j:16|ii'jki''j'") >> i("+kij~ij|i:8:6,j:16|ii'jki''j'0")
