(I | i("kj*lj~klj|j:32,k:12,l:32|jklk'l'j'")) >> i("ikl*klj~klij|i:8,j:32,k:12|jk1ik'li'j'") >> i("+klij~ij|i:8,j:32,k:12|jkik'li'j'0")
