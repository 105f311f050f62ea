i("+ik~ik|i:48,k:16|iki'k'") >> ~i("kj*ik~kij|i:6:8,j:48|i1ji'ki''j'") >> i("+kij~ij|i:6:8,j:48|iji'ki''j'0")
