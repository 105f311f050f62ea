(i(">ij~i|i:4,j:128|iji'j'") & I) >> (~i("ij-i~ij|i:4,j:128|ij1i'j'") >> i("^ij~ij|i:4,j:128|iji'j'0") >> i("+ij~i|i:4,j:128|iji'j'0") >> i("$i~i|i:4|i0i'") & I) >> i("i+i~i|i:4|i1i'0")
