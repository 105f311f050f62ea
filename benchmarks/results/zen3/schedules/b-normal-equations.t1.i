(I & i("ji*i~ji|i:8,j:6|jij'i'") >> i("+ji~j|i:8,j:6|jij'i'0")) >> i("ji*j~ji|j:6|j1j'i") >> i("+ji~i|j:6|jj'i0")
