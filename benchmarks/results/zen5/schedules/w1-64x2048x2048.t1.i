(I | i("+kj~kj|j:128,k:256|kjk'j'")) >> i("ik*kj~kij|i:6,j:2:64,k:256|kj1ij'k'i'j''") >> i("+kij~ij|i:6,j:2:64,k:256|kjij'k'i'j''0")
