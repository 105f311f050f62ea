(I | i("+kj~kj|j:64,k:256|jkk'j'")) >> i("ik*kj~kij|i:6,j:64,k:256|jk1ik'i'j'") >> i("+kij~ij|i:6,j:64,k:256|jkik'i'j'0")
