i("ik*kj~kij|i:6,j:48,k:128|jkik'i'j'") >> i("+kij~ij|i:6,j:48,k:128|jkik'i'j'0")
