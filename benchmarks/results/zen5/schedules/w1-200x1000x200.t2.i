(I | i("+kj~kj|j:128,k:1000|jkk'j'")) >> i("ik*kj~kij|i:8:6,j:2:64,k:1000|jk1ii'j'k'i''j''") >> i("+kij~ij|i:8:6,j:2:64,k:1000|jkii'j'k'i''j''0")
