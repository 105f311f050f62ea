(I & i("+kj~kj|j:256,k:64|jkk'j'")) >> i("ki*kj~kij|i:6,j:4:64,k:64|jk1ij'k'i'j''") >> i("+kij~ij|i:6,j:4:64,k:64|jkij'k'i'j''0")
