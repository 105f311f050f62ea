i(">ji~i|i:48,j:6|jij'i'")
