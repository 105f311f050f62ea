(I | i("+kj~kj|j:128|jkj'")) >> i("ik*kj~kij|i:16:6,j:2:64|j1ii'j'ki''j''") >> i("+kij~ij|i:16:6,j:2:64|jii'j'ki''j''0")
