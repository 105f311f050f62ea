i("ik*kj~kij|i:2:6,j:48,k:96|ikji'k'i''j'") >> i("+kij~ij|i:2:6,j:48,k:96|ikji'k'i''j'0")
