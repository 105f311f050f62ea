(I | i("+kj~kj|j:128,k:256|jkk'j'")) >> i("ik*kj~kij|i:16:6,j:8:16,k:256|jk1ii'j'k'i''j''") >> i("+kij~ij|i:16:6,j:8:16,k:256|jkii'j'k'i''j''0")
