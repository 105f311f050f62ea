(i("+ik~ik|i:256,k:16|ikk'i'") | i("+kj~kj|j:128,k:16|jkk'j'")) >> ~i("kj*ik~ikj|i:256,j:128,k:16|ijk10k'i'j'") >> i("+ikj~ij|i:256,j:128,k:16|ijkk'i'j'0")
