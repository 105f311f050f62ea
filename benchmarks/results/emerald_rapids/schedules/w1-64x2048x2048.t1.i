i("ik*kj~kij|i:8,j:48,k:256|kjik'i'j'") >> i("+kij~ij|i:8,j:48,k:256|kjik'i'j'0")
