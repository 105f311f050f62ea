i("+ki~ki|i:128|iki'") >> ~i("jk*ki~kji|i:2:64,j:4:6|i1jj'i'kj''i''") >> i("+kji~ij|i:2:64,j:4:6|ijj'i'kj''i''0")
