(I | i("+ilk~ilk|k:16,l:16|ikll'k'")) >> i("ijl*ilk~iljk|j:8:6,k:16|i1jkj'lj''k'") >> i("+iljk~ijk|j:8:6,k:16|ijkj'lj''k'0")
