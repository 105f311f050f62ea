(I | i("+lk~lk")) >> i("ijl*lk~iljk|j:4:6,k:6:16|ikjj'k'lj''k''") >> i("+iljk~ijk|j:4:6,k:6:16|ikjj'k'lj''k''0")
