(I | i("+kj~kj|j:48,k:1000|jkk'j'")) >> i("ik*kj~kij|i:8,j:48,k:1000|jk1ik'i'j'") >> i("+kij~ij|i:8,j:48,k:1000|jkik'i'j'0")
