(I | i("+kj~kj|j:256|jkj'")) >> i("ik*kj~kij|i:2:6,j:16:16|j1ii'j'ki''j''") >> i("+kij~ij|i:2:6,j:16:16|jii'j'ki''j''0")
