(i("+ik~ki|i:128,k:32|ikk'i'") | i("+kj~kj|j:32,k:256|jkk'j'")) >> i("ki*kj~ikj|i:128,j:128,k:32|ijk0k'i'j'") >> i("+ikj~ij|i:128,j:128,k:32|ijkk'i'j'0")
