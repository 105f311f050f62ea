i("+ik~ik|i:96,k:128|iki'k'") >> ~i("kj*ik~kij|i:16:6,j:16,k:128|ik1ji'k'i''j'") >> i("+kij~ij|i:16:6,j:16,k:128|ikji'k'i''j'0")
