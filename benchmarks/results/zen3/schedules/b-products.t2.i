(I | i("+ilk~ilk|k:64,l:16|ikll'k'")) >> i("ijl*ilk~iljk|j:8:6,k:4:16|i1jkj'k'lj''k''") >> i("+iljk~ijk|j:8:6,k:4:16|ijkj'k'lj''k''0")
