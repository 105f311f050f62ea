(I | i("+ilk~ilk|k:64,l:16|ikll'k'")) >> i("ijl*ilk~iljk|j:4,k:64|i1kjlj'k'") >> i("+iljk~ijk|j:4,k:64|ikjlj'k'0")
