i("+ik~ki|i:48|iki'") >> ~i("kj*ki~kji|i:48,j:32:8|i1jj'kj''i'") >> i("+kji~ij|i:48,j:32:8|ijj'kj''i'0")
