(I | i("+ilk~ilk|k:64|kilk'")) >> i("jl*ilk~iljk|j:2:6,k:4:16|ijkj'k'lj''k''") >> i("+iljk~ijk|j:2:6,k:4:16|ijkj'k'lj''k''0")
