(I | i("+lkj~klj|j:64,l:6|jlkl'j'")) >> i("ikl*klj~klij|i:2:6,j:4:16,k:8|j1kii'j'k'li''j''") >> i("+klij~ij|i:2:6,j:4:16,k:8|jkii'j'k'li''j''0")
