i("+ki~ki|i:48,k:256|ikk'i'") >> ~i("kj*ki~kij|i:4:12,j:32,k:256|ik1ji'k'i''j'") >> i("+kij~ij|i:4:12,j:32,k:256|ikji'k'i''j'0")
