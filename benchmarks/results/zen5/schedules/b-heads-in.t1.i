(I | i("+ilk~ilk|k:64|iklk'")) >> i("jl*ilk~iljk|j:6,k:64|ik1jlj'k'") >> i("+iljk~ijk|j:6,k:64|ikjlj'k'0")
