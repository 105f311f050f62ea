(i("+ki~ik|k:16|kik'") | i("+kj~kj|j:64|jkj'")) >> ~i("kj*ik~kij|i:6,j:4:16|j0ij'ki'j''") >> i("+kij~ij|i:6,j:4:16|jij'ki'j''0")
