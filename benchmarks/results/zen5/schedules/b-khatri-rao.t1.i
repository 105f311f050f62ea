(I | i("kj*lj~klj|j:32,k:8,l:4|jklk'l'j'")) >> i("ikl*klj~klij|i:8,j:32,k:8|jk1ik'li'j'") >> i("+klij~ij|i:8,j:32,k:8|jkik'li'j'0")
