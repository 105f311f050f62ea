(i(">ij~i|j:256|") & I) >> (~i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> i("+ij~i||ij0") >> i("$i~i||i0") & I) >> i("i+i~i||i10")
