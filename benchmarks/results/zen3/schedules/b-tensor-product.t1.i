(I | i("+lkj~klj|j:64,k:4|jkk'lj'")) >> i("ikl*klj~klij|i:6,j:4:16,k:4|jk1ij'k'li'j''") >> i("+klij~ij|i:6,j:4:16,k:4|jkij'k'li'j''0")
