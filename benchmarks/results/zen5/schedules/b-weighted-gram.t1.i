(I | i("k*kj~kj|j:128,k:96|jkk'j'")) >> ~i("kj*ki~kij|i:2:6,j:2:64,k:96|jk0ii'j'k'i''j''") >> i("+kij~ij|i:2:6,j:2:64,k:96|jkii'j'k'i''j''0")
