(I | i("k*kj~kj|j:96,k:96|jkk'j'")) >> ~i("kj*ki~kij|i:6,j:6:16,k:96|jk0ij'k'i'j''") >> i("+kij~ij|i:6,j:6:16,k:96|jkij'k'i'j''0")
