(I | i("kj*lj~klj|j:32,k:4,l:8|jklk'l'j'")) >> i("ikl*klj~klij|i:6,j:2:16,k:4|jk1ij'k'li'j''") >> i("+klij~ij|i:6,j:2:16,k:4|jkij'k'li'j''0")
