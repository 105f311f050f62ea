(I | i("+ilk~ilk|k:48|iklk'")) >> i("ijl*ilk~iljk|j:8,k:48|ik1jlj'k'") >> i("+iljk~ijk|j:8,k:48|ikjlj'k'0")
