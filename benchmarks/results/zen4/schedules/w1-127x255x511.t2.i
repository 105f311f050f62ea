(I | i("+kj~kj|j:64|jkj'")) >> i("ik*kj~kij|i:4,j:64,k:256|j1kik'i'j'") >> i("+kij~ij|i:4,j:64,k:256|jkik'i'j'0")
