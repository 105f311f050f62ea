(I | i("+j~j|j:6|")) >> i("ji*j~ji|i:32,j:6|j1ij'i'") >> i("+ji~i|i:32,j:6|jij'i'0")
