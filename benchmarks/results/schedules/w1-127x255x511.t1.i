(I | i("+kj~kj|j:32|jkj'")) >> i("ik*kj~kij|i:8,j:32,k:128|j1kik'i'j'") >> i("+kij~ij|i:8,j:32,k:128|jkik'i'j'0")
