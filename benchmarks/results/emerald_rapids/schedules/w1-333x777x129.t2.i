i("ik*kj~kij|i:2:12,j:32,k:256|ikji'k'i''j'") >> i("+kij~ij|i:2:12,j:32,k:256|ikji'k'i''j'0")
