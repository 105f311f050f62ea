(I | i("+kj~kj|j:64,k:128|jkk'j'")) >> i("ik*kj~kij|i:4,j:64,k:128|jk1ik'i'j'") >> i("+kij~ij|i:4,j:64,k:128|jkik'i'j'0")
