(I | i("+ilk~ilk|k:64|iklk'")) >> i("jl*ilk~iljk|j:2:6,k:4:16|ik1jj'k'lj''k''") >> i("+iljk~ijk|j:2:6,k:4:16|ikjj'k'lj''k''0")
