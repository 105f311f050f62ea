(i("+ki~ik|i:24,k:16|kii'k'") | i("+kj~kj|j:64|jkj'")) >> ~i("kj*ik~kij|i:4:6,j:4:16|j0ii'j'ki''j''") >> i("+kij~ij|i:4:6,j:4:16|jii'j'ki''j''0")
