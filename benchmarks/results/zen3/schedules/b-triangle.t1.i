(i("+ilk~ilk|k:8,l:8|klil'k'") | i("+jlk~jlk|k:8,l:8|kljl'k'")) >> ~i("jlk*ilk~jlik|i:6,k:8|k01ijli'k'") >> i("+jlik~ijk|i:6,k:8|kijli'k'0")
