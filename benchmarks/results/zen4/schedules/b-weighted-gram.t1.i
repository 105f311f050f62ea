(I | i("k*kj~kj|j:48,k:128|jkk'j'")) >> ~i("kj*ki~kij|i:8,j:48,k:128|jk0ik'i'j'") >> i("+kij~ij|i:8,j:48,k:128|jkik'i'j'0")
