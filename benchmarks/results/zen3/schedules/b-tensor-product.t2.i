(I | i("+lkj~klj|j:32,l:6|jlkl'j'")) >> i("ikl*klj~klij|i:16:6,j:2:16,k:16|j1kii'j'k'li''j''") >> i("+klij~ij|i:16:6,j:2:16,k:16|jkii'j'k'li''j''0")
