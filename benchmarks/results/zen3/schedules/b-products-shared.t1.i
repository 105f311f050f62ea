(I | i("+lk~lk|k:96|klk'")) >> i("ijl*lk~iljk|j:2:6,k:6:16|k1ijj'k'lj''k''") >> i("+iljk~ijk|j:2:6,k:6:16|kijj'k'lj''k''0")
