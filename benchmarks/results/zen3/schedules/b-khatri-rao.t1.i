(I | i("kj*lj~klj|j:32,k:6,l:4|jklk'l'j'")) >> i("ikl*klj~klij|i:6,j:2:16,k:6|jk1ij'k'li'j''") >> i("+klij~ij|i:6,j:2:16,k:6|jkij'k'li'j''0")
