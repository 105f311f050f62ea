i("ik*kj~kij|i:8:4,j:64,k:48|ikji'k'i''j'") >> i("+kij~ij|i:8:4,j:64,k:48|ikji'k'i''j'0")
