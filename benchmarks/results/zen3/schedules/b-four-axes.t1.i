(I | i("+mnkl~kmnl|l:16|lkmnl'")) >> i("ijmn*kmnl~kimnjl|j:4,l:16|l1jkimnj'l'") >> i("+kimnjl~ijkl|j:4,l:16|ljkimnj'l'0")
