(I | i("+kj~kj|j:48,k:1000|jkk'j'")) >> i("ik*kj~kij|i:2:6,j:3:16,k:1000|jk1ii'j'k'i''j''") >> i("+kij~ij|i:2:6,j:3:16,k:1000|jkii'j'k'i''j''0")
