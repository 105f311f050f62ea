(I | i("+lkj~klj|j:64,k:8|jkk'lj'")) >> i("ikl*klj~klij|i:6,j:64,k:8|jk1ik'li'j'") >> i("+klij~ij|i:6,j:64,k:8|jkik'li'j'0")
