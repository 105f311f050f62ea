(i("+ik~ki|i:128,k:32|ikk'i'") | i("+kj~kj|j:32|jkj'")) >> i("ki*kj~kij|i:128,j:128,k:32|ijk0k'i'j'") >> i("+kij~ij|i:128,j:128,k:32|ijkk'i'j'0")
