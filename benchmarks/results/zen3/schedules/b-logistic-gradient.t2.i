(I & i("ji*i~ji|j:8|") >> i("+ji~j|j:8|jj'i0") >> i("-j~j|j:8|j0j'") >> i("^j~j|j:8|jj'0") >> i("j+1~j|j:8|jj'0") >> i("1/j~j|j:8|jj'1") >> i("j-j~j|j:8|jj'0")) >> i("ji*j~ji||ji") >> i("+ji~i||ji0")
