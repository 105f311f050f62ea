(i("+ik~ki|i:128,k:16|ikk'i'") | i("+kj~kj|j:128,k:16|jkk'j'")) >> i("ki*kj~ikj|i:128,j:128,k:16|ijk10k'i'j'") >> i("+ikj~ij|i:128,j:128,k:16|ijkk'i'j'0")
