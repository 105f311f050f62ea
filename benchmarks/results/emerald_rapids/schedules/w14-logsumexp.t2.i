(i(">ij~i") & I) >> (~i("ij-i~ij|j:128|i1jj'") >> i("^ij~ij|j:128|ijj'0") >> i("+ij~i|j:128|ijj'0") >> i("$i~i||i0") & I) >> i("i+i~i||i10")
