(I | i("+lk~lk|k:48|klk'")) >> i("ijl*lk~iljk|j:2:8,k:48|jkj'ilj''k'") >> i("+iljk~ijk|j:2:8,k:48|jkj'ilj''k'0")
