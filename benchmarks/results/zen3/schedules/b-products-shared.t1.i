(I | i("+lk~lk|k:128|klk'")) >> i("ijl*lk~iljk|j:6,k:8:16|k1ijk'lj'k''") >> i("+iljk~ijk|j:6,k:8:16|kijk'lj'k''0")
