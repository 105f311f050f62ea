(i("+ik~ik|i:256,k:16|ikk'i'") | i("+kj~kj|j:128,k:16|jkk'j'")) >> i("ik*kj~kij|i:256,j:128,k:16|ijk10k'i'j'") >> i("+kij~ij|i:256,j:128,k:16|ijkk'i'j'0")
