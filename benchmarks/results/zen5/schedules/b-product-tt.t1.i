i("+ki~ki|i:48|iki'") >> ~i("jk*ki~kji|i:48,j:8|i1jkj'i'") >> i("+kji~ij|i:48,j:8|ijkj'i'0")
