i(">ij~i|i:4,j:16|iji'j'")
