(I | i("+mnkl~kmnl|l:16,n:16|lnkmn'l'")) >> i("ijmn*kmnl~ikmnjl|j:4,l:16,m:12|l1jmikm'nj'l'") >> i("+ikmnjl~ijkl|j:4,l:16,m:12|ljmikm'nj'l'0")
