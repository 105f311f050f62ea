(I | i("+ikl~ilk|k:64|iklk'")) >> i("ijl*ilk~iljk|j:6,k:4:16|ik1jk'lj'k''") >> i("+iljk~ijk|j:6,k:4:16|ikjk'lj'k''0")
