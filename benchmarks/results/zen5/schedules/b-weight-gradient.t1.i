i("ki*kj~kij|i:8,j:48,k:32|kjik'i'j'") >> i("+kij~ij|i:8,j:48,k:32|kjik'i'j'0")
