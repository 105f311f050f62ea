(I | i("+mnkl~kmnl|k:8,l:16|klk'mnl'")) >> i("ijmn*kmnl~ikmnjl|j:4,k:8,l:16|kl1jik'mnj'l'") >> i("+ikmnjl~ijkl|j:4,k:8,l:16|kljik'mnj'l'0")
