i("+ikj~ij|i:4,j:16|ikji'j'")
