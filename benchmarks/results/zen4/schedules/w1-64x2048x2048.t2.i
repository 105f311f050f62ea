(I | i("+kj~kj|j:96,k:256|jkk'j'")) >> i("ik*kj~kij|i:4,j:96,k:256|jk1ik'i'j'") >> i("+kij~ij|i:4,j:96,k:256|jkik'i'j'0")
