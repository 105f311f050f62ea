(I | i("+kj~kj|j:256,k:256|jkk'j'")) >> i("ik*kj~kij|i:6,j:4:64,k:256|jk1ij'k'i'j''") >> i("+kij~ij|i:6,j:4:64,k:256|jkij'k'i'j''0")
