(I | i("+kj~kj|j:128,k:256|jkk'j'")) >> i("ik*kj~kij|i:6,j:2:64,k:256|jk1ij'k'i'j''") >> i("+kij~ij|i:6,j:2:64,k:256|jkij'k'i'j''0")
