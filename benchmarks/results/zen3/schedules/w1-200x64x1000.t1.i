(I | i("+kj~kj|j:96|jkj'")) >> i("ik*kj~kij|i:16:6,j:6:16|j1ii'j'ki''j''") >> i("+kij~ij|i:16:6,j:6:16|jii'j'ki''j''0")
