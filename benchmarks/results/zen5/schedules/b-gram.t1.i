(i("+kj~kj|j:32|jkj'") & i("+ki~ki|i:12|iki'")) >> i("kj*ki~kij|i:12,j:32|j0iki'j'") >> i("+kij~ij|i:12,j:32|jiki'j'0")
