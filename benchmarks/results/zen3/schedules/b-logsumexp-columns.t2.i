(i(">ji~i|i:8,j:6|jij'i'") & I) >> (~i("ji-i~ji") >> i("^ji~ji||ji0") >> i("+ji~i||ji0") >> i("$i~i") & I) >> i("i+i~i||i0")
