(I | i("+lkj~klj|j:48,k:4|jkk'lj'")) >> i("ikl*klj~klij|i:16:6,j:3:16,k:4|jk1ii'j'k'li''j''") >> i("+klij~ij|i:16:6,j:3:16,k:4|jkii'j'k'li''j''0")
