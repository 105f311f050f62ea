(I | i("+kj~kj|j:48,k:96|jkk'j'")) >> i("ki*kj~kij|i:2:6,j:3:16,k:96|jk1ii'j'k'i''j''") >> i("+kij~ij|i:2:6,j:3:16,k:96|jkii'j'k'i''j''0")
