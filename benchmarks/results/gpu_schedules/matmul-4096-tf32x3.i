(i("+ik~ik|i:128,k:32|ikk'i'") | i("+kj~kj|j:128,k:32|jkk'j'")) >> i("ik*kj~kij|i:128,j:128,k:32|ijk10k'i'j'") >> i("+kij~ij|i:128,j:128,k:32|ijkk'i'j'0")
