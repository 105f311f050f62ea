(i("+ki~ik|k:16|kik'") | i("+kj~kj|j:48|jkj'")) >> ~i("kj*ik~kij|i:6,j:3:16|j0ij'ki'j''") >> i("+kij~ij|i:6,j:3:16|jij'ki'j''0")
