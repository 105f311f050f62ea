(I | i("+kj~kj|j:256,k:128|jkk'j'")) >> i("ik*kj~kij|i:2:6,j:16:16,k:128|jk1ii'j'k'i''j''") >> i("+kij~ij|i:2:6,j:16:16,k:128|jkii'j'k'i''j''0")
