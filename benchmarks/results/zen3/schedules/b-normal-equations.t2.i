(I & i("ji*i~ji|j:12|") >> i("+ji~j|j:12|jj'i0")) >> i("ji*j~ji|i:128,j:12|j1ij'i'") >> i("+ji~i|i:128,j:12|jij'i'0")
