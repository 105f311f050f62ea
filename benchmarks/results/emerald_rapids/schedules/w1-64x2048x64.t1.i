i("ik*kj~kij|i:4,j:64,k:64|kjik'i'j'") >> i("+kij~ij|i:4,j:64,k:64|kjik'i'j'0")
