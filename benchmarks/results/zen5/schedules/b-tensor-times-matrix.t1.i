i("+ilk~ilk|k:32|iklk'") >> ~i("lj*ilk~iljk|j:2:8,k:32|ik1jj'lj''k'") >> i("+iljk~ijk|j:2:8,k:32|ikjj'lj''k'0")
