(I | i("+kj~kj|j:128|jkj'")) >> i("ik*kj~kij|i:6,j:2:64,k:256|j1kij'k'i'j''") >> i("+kij~ij|i:6,j:2:64,k:256|jkij'k'i'j''0")
