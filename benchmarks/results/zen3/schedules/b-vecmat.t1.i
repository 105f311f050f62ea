i("ji*j~ji|i:64,j:6|jij'i'") >> i("+ji~i|i:64,j:6|jij'i'0")
