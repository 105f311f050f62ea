(I | i("+kj~kj|j:256,k:256|jkk'j'")) >> i("ik*kj~kij|i:2:6,j:4:64,k:256|jk1ii'j'k'i''j''") >> i("+kij~ij|i:2:6,j:4:64,k:256|jkii'j'k'i''j''0")
