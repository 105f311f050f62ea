i("+ikj~ij|i:4,j:8|ikji'j'")
