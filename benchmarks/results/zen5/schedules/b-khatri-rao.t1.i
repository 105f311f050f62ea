(I | i("kj*lj~klj|j:32,l:32|jkll'j'")) >> i("ikl*klj~klij|i:8,j:32|jk1ili'j'") >> i("+klij~ij|i:8,j:32|jkili'j'0")
