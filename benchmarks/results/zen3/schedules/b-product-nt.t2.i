(I | i("+jk~kj|j:32,k:32|jkk'j'")) >> i("ik*kj~kij|i:6,j:2:16|j1ij'ki'j''") >> i("+kij~ij|i:6,j:2:16|jij'ki'j''0")
