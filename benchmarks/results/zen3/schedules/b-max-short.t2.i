i(">ij~i|i:256,j:16|iji'j'")
