(I | i("+lk~lk|k:64|klk'")) >> i("ijl*lk~iljk|j:16:6,k:4:16|jkj'k'ilj''k''") >> i("+iljk~ijk|j:16:6,k:4:16|jkj'k'ilj''k''0")
