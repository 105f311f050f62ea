i("+ijl~ilj|j:16|jilj'") >> ~i("lk*ilj~ilkj|j:16,k:24|j1iklk'j'") >> i("+ilkj~ijk|j:16,k:24|jiklk'j'0")
