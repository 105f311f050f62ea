(i("+mik~imk|k:4|kimk'") | i("+mjl~jml|l:16|ljml'")) >> ~i("jml*imk~jimkl|k:4,l:16|k1ljimk'l'") >> i("+jimkl~ijkl|k:4,l:16|kljimk'l'0")
