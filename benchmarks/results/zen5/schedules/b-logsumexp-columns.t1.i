(i(">ji~i||ji") & I) >> (~i("ji-i~ji") >> i("^ji~ji||ji0") >> i("+ji~i||ji0") >> i("$i~i") & I) >> i("i+i~i||i0")
