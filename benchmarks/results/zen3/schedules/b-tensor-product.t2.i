(I | i("+lkj~klj|j:48,k:6|jkk'lj'")) >> i("ikl*klj~klij|i:16:6,j:3:16,k:6|jk1ii'j'k'li''j''") >> i("+klij~ij|i:16:6,j:3:16,k:6|jkii'j'k'li''j''0")
