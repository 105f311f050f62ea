i("+ijl~ilj|j:32|ijlj'") >> ~i("ikl*ilj~ilkj|j:32,k:4:8|ij1kk'lk''j'") >> i("+ilkj~ijk|j:32,k:4:8|ijkk'lk''j'0")
