(i("+ilk~ilk|k:32|iklk'") | i("+lj~lj|j:48|jlj'")) >> ~i("lj*ilk~iljk|j:8:6,k:2:16|ik1jj'k'lj''k''") >> i("+iljk~ijk|j:8:6,k:2:16|ikjj'k'lj''k''0")
