i("+ik~ik|i:64,k:256|iki'k'") >> ~i("kj*ik~kij|i:8:8,j:48,k:256|ik1ji'k'i''j'") >> i("+kij~ij|i:8:8,j:48,k:256|ikji'k'i''j'0")
