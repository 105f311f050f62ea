i("+ilk~ilk|k:32|iklk'") >> ~i("lj*ilk~iljk|j:8,k:32|ik1jlj'k'") >> i("+iljk~ijk|j:8,k:32|ikjlj'k'0")
