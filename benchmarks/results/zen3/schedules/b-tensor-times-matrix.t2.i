(i("+ilk~ilk|k:128|iklk'") | i("+lj~lj|j:48|jlj'")) >> ~i("lj*ilk~iljk|j:8:6,k:8:16|ik1jj'k'lj''k''") >> i("+iljk~ijk|j:8:6,k:8:16|ikjj'k'lj''k''0")
