i("ik*kj~kij|i:4:4,j:64,k:64|ikji'k'i''j'") >> i("+kij~ij|i:4:4,j:64,k:64|ikji'k'i''j'0")
