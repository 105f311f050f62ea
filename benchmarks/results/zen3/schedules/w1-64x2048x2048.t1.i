(I | i("+kj~kj|j:256|jkj'")) >> i("ik*kj~kij|i:2:6,j:16:16,k:256|j1kii'j'k'i''j''") >> i("+kij~ij|i:2:6,j:16:16,k:256|jkii'j'k'i''j''0")
