i("ik*kj~kij|i:4:8,j:48,k:128|ikji'k'i''j'") >> i("+kij~ij|i:4:8,j:48,k:128|ikji'k'i''j'0")
