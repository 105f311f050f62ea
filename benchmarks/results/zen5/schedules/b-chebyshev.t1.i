i("+ik~ki|i:16|iki'") >> i("ki-jk~kji|i:16,j:16|i0jkj'i'") >> (I & i("-kji~kji|i:16,j:16|ijkj'i'0")) >> i("kji>kji~kji|i:16,j:16|ijkj'i'01") >> i(">kji~ij|i:16,j:16|ijkj'i'0")
