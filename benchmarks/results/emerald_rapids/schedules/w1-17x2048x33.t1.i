(I | i("+kj~kj|j:48,k:64|jkk'j'")) >> i("ik*kj~kij|i:6,j:48,k:64|jk1ik'i'j'") >> i("+kij~ij|i:6,j:48,k:64|jkik'i'j'0")
