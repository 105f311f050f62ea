(I | i("+kj~kj|j:256|jkj'")) >> i("ik*kj~kij|i:6,j:4:64|j1ij'ki'j''") >> i("+kij~ij|i:6,j:4:64|jij'ki'j''0")
