i(">ij~i|i:8|iji'")
