(I | i("kj*lj~klj|j:16,k:6,l:8|jklk'l'j'")) >> i("ikl*klj~klij|i:16:6,j:16,k:6|jk1ii'k'li''j'") >> i("+klij~ij|i:16:6,j:16,k:6|jkii'k'li''j'0")
