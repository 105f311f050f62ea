(I | i("+j~j|j:4|")) >> i("ji*j~ji|i:8,j:4|j1ij'i'") >> i("+ji~i|i:8,j:4|jij'i'0")
