(I | i("kj*lj~lkj|j:32,k:8|jklk'j'")) >> i("ikl*lkj~klij|i:8,j:32,k:8|jk1ik'li'j'") >> i("+klij~ij|i:8,j:32,k:8|jkik'li'j'0")
