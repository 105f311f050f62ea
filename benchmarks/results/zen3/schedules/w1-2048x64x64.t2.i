(I | i("+kj~kj|j:64|jkj'")) >> i("ik*kj~kij|i:6,j:4:16|j1ij'ki'j''") >> i("+kij~ij|i:6,j:4:16|jij'ki'j''0")
