(I | i("+mnkl~kmnl|l:32,n:4|lnkmn'l'")) >> i("ijmn*kmnl~ikmnjl|j:8,l:32,m:12|l1mjikm'nj'l'") >> i("+ikmnjl~ijkl|j:8,l:32,m:12|lmjikm'nj'l'0")
