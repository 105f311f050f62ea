(i("+kj~jk|j:48,k:16|jkj'k'") & i("+ki~ki|i:16|iki'")) >> i("jk*ki~kji|i:16,j:8:6|i1jj'kj''i'") >> i("+kji~ij|i:16,j:8:6|ijj'kj''i'0")
