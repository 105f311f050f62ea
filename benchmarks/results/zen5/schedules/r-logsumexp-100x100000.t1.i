(i(">ij~i|j:256|") & I) >> (~i("ij-i~ij|j:256|ij1j'") >> i("^ij~ij|j:256|ijj'0") >> i("+ij~i|j:256|ijj'0") >> i("$i~i||i0") & I) >> i("i+i~i||i10")
