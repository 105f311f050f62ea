i("ji*j~ji|i:16,j:4|jij'i'") >> i("+ji~i|i:16,j:4|jij'i'0")
