i("ji*j~ji|i:24,j:6|jij'i'") >> i("+ji~i|i:24,j:6|jij'i'0")
