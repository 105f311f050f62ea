(I | i("+lj~lj|j:32|jlj'")) >> i("ilk*lj~ilkj|j:32,k:4:8|ijkk'lk''j'") >> i("+ilkj~ijk|j:32,k:4:8|ijkk'lk''j'0")
