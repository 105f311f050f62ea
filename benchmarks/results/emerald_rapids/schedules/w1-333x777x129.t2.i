(I | i("+kj~kj|j:48|jkj'")) >> i("ik*kj~kij|i:32:8,j:48|iji'ki''j'") >> i("+kij~ij|i:32:8,j:48|iji'ki''j'0")
