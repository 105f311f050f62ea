(I | i("+ikl~ilk|k:64|iklk'")) >> i("ijl*ilk~iljk|j:6,k:64|ik1jlj'k'") >> i("+iljk~ijk|j:6,k:64|ikjlj'k'0")
