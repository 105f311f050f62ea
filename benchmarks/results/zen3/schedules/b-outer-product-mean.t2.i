(i("+mik~ikm|i:64,m:8|imi'km'") | i("+mjl~jml|l:16|jlml'")) >> ~i("jml*ikm~jimkl|k:4,l:16|j0klimk'l'") >> i("+jimkl~ijkl|k:4,l:16|jklimk'l'0")
