(I | i("kj*lj~klj|j:16,l:32|jlkl'j'")) >> i("ikl*klj~klij|i:16:6,j:16,k:24|j1kii'k'li''j'") >> i("+klij~ij|i:16:6,j:16,k:24|jkii'k'li''j'0")
