i("+ik~ik|i:16,k:48|iki'k'") >> ~i("kj*ik~kij|i:2:8,j:32,k:48|ik1ji'k'i''j'") >> i("+kij~ij|i:2:8,j:32,k:48|ikji'k'i''j'0")
