i("ik*kj~kij|i:4,j:64,k:64|jkik'i'j'") >> i("+kij~ij|i:4,j:64,k:64|jkik'i'j'0")
