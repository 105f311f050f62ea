i(">ji~i|i:8,j:6|jij'i'")
