(I | i("+ikl~ilk|k:16|iklk'")) >> i("ijl*ilk~iljk|j:6,k:16|ik1jlj'k'") >> i("+iljk~ijk|j:6,k:16|ikjlj'k'0")
