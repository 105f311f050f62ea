(I | i("+lk~lk|k:48|klk'")) >> i("ijl*lk~iljk|j:6,k:3:16|jkk'ilj'k''") >> i("+iljk~ijk|j:6,k:3:16|jkk'ilj'k''0")
