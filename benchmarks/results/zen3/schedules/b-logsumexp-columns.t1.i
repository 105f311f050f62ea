(i(">ji~i|i:96,j:6|jij'i'") & I) >> (~i("ji-i~ji|i:96,j:6|jij'i'") >> i("^ji~ji|i:96,j:6|jij'i'0") >> i("+ji~i|i:96,j:6|jij'i'0") >> i("$i~i") & I) >> i("i+i~i||i0")
