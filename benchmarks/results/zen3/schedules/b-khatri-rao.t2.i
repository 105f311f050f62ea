(I | i("kj*lj~klj|j:32,k:12,l:32|jklk'l'j'")) >> i("ikl*klj~klij|i:6,j:2:16,k:12|jk1ij'k'li'j''") >> i("+klij~ij|i:6,j:2:16,k:12|jkij'k'li'j''0")
