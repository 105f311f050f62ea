(I | i("+ilk~ilk|k:16|iklk'")) >> i("jl*ilk~iljk|j:16,k:16|i1jklj'k'") >> i("+iljk~ijk|j:16,k:16|ijklj'k'0")
