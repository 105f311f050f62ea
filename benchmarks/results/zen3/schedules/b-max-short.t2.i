i(">ij~i|i:8,j:8|ijj'i'")
