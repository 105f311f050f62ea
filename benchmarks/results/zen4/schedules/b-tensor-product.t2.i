(I | i("+lkj~klj|j:64,l:6|jlkl'j'")) >> i("ikl*klj~klij|i:2:6,j:64,k:24|j1kii'k'li''j'") >> i("+klij~ij|i:2:6,j:64,k:24|jkii'k'li''j'0")
