(I | i("+kj~kj|j:32,k:256|jkk'j'")) >> i("ik*kj~kij|i:8,j:32,k:256|jk1ik'i'j'") >> i("+kij~ij|i:8,j:32,k:256|jkik'i'j'0")
