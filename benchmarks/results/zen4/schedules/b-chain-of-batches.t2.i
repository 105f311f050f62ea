(I | i("iml*lk~ilmk|k:32,m:2:12|ikmm'lm''k'") >> i("+ilmk~imk|k:32,m:2:12|ikmm'lm''k'0")) >> i("ijm*imk~imjk|j:8,k:32|ik1jmj'k'") >> i("+imjk~ijk|j:8,k:32|ikjmj'k'0")
