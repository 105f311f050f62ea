(I | i("+ikl~ilk|k:64|iklk'")) >> i("ijl*ilk~iljk|j:4:6,k:64|ik1jj'lj''k'") >> i("+iljk~ijk|j:4:6,k:64|ikjj'lj''k'0")
