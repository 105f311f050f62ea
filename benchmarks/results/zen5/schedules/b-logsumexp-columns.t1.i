(i(">ji~i||ji") & I) >> (~i("ji-i~ji|i:64,j:8|jij'i'") >> i("^ji~ji|i:64,j:8|jij'i'0") >> i("+ji~i|i:64,j:8|jij'i'0") >> i("$i~i") & I) >> i("i+i~i||i0")
