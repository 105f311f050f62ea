(I | i("+ilk~ilk|k:128|iklk'")) >> i("ijl*ilk~iljk|j:6,k:8:16|ik1jk'lj'k''") >> i("+iljk~ijk|j:6,k:8:16|ikjk'lj'k''0")
