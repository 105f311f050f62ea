(I | i("kj*lj~klj|j:32,l:64|jlkl'j'")) >> i("ikl*klj~klij|i:8:8,j:32|ikji'li''j'") >> i("+klij~ij|i:8:8,j:32|ikji'li''j'0")
