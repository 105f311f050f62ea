i("+ki~ki|i:48|iki'") >> ~i("jk*ki~kji|i:3:16,j:2:6|i1jj'i'kj''i''") >> i("+kji~ij|i:3:16,j:2:6|ijj'i'kj''i''0")
