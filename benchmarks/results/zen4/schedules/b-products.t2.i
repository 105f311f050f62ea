(I | i("+ilk~ilk|k:64,l:64|ikll'k'")) >> i("ijl*ilk~iljk|j:32:4,k:64,l:64|i1ljkj'l'j''k'") >> i("+iljk~ijk|j:32:4,k:64,l:64|iljkj'l'j''k'0")
