(I | i("kj*lj~lkj|j:16,k:4|jklk'j'")) >> i("ikl*lkj~klij|i:16:6,j:16,k:4|jk1ii'k'li''j'") >> i("+klij~ij|i:16:6,j:16,k:4|jkii'k'li''j'0")
