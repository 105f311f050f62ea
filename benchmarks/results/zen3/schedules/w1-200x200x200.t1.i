(I | i("+kj~kj|j:128|jkj'")) >> i("ik*kj~kij|i:6,j:8:16|j1ij'ki'j''") >> i("+kij~ij|i:6,j:8:16|jij'ki'j''0")
