(I | i("+kj~kj|j:48,k:1000|jkk'j'")) >> i("ik*kj~kij|i:6,j:3:16,k:1000|jk1ij'k'i'j''") >> i("+kij~ij|i:6,j:3:16,k:1000|jkij'k'i'j''0")
