(I | i("+lk~lk|k:48|klk'")) >> i("ijl*lk~iljk|j:8,k:48|jkilj'k'") >> i("+iljk~ijk|j:8,k:48|jkilj'k'0")
