(I | i("+lj~lj|j:16|jlj'")) >> i("ilk*lj~ilkj|j:16,k:16|j1iklk'j'") >> i("+ilkj~ijk|j:16,k:16|jiklk'j'0")
