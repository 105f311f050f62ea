i("ik*kj~kij|i:8,j:48,k:128|jkik'i'j'") >> i("+kij~ij|i:8,j:48,k:128|jkik'i'j'0")
