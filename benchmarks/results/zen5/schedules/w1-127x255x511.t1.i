(I | i("+kj~kj|j:48|jkj'")) >> i("ik*kj~kij|i:8,j:48,k:256|j1kik'i'j'") >> i("+kij~ij|i:8,j:48,k:256|jkik'i'j'0")
