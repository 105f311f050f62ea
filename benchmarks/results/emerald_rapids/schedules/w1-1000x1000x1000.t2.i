(I | i("+kj~kj|j:256|jkj'")) >> i("ik*kj~kij|i:4:6,j:4:64|j1ii'j'ki''j''") >> i("+kij~ij|i:4:6,j:4:64|jii'j'ki''j''0")
