i("+ijl~ilj|j:16|ijlj'") >> ~i("lk*ilj~ilkj|j:16,k:24|ij1klk'j'") >> i("+ilkj~ijk|j:16,k:24|ijklk'j'0")
