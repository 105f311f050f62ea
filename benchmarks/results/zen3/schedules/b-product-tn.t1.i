(i("+ki~ik|k:16|kik'") | i("+kj~kj|j:48|jkj'")) >> ~i("kj*ik~kij|i:2:6,j:3:16|j0ii'j'ki''j''") >> i("+kij~ij|i:2:6,j:3:16|jii'j'ki''j''0")
