i("+ik~ki|i:64|iki'") >> ~i("jk*ki~kji|i:4:16,j:6|i1ji'kj'i''") >> i("+kji~ji|i:4:16,j:6|iji'kj'i''0") >> i("0>ji~ji|i:64,j:6|ij1j'i'") >> i("+ji~i|i:64,j:6|ijj'i'0")
