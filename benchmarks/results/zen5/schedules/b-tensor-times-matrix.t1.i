i("+ilk~ilk|k:48,l:16|ikll'k'") >> ~i("lj*ilk~iljk|j:2:8,k:48|ik1jj'lj''k'") >> i("+iljk~ijk|j:2:8,k:48|ikjj'lj''k'0")
