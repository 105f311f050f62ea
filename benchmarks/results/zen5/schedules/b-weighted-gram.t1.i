(I | i("k*kj~kj|j:64,k:96|jkk'j'")) >> ~i("kj*ki~kij|i:2:6,j:64,k:96|jk0ii'k'i''j'") >> i("+kij~ij|i:2:6,j:64,k:96|jkii'k'i''j'0")
