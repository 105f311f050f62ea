(i(">ij~i|i:8|") & I) >> (~i("ij-i~ij|i:8,j:48|i1ji'j'") >> i("^ij~ij|i:8,j:48|iji'j'0") >> i("+ij~i|i:8,j:48|iji'j'0") >> i("$i~i|i:8|i0i'") & I) >> i("i+i~i|i:8|i1i'0")
