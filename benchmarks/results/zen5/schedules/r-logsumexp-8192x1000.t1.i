(i(">ij~i|i:4|") & I) >> (~i("ij-i~ij|i:4,j:64|i1ji'j'") >> i("^ij~ij|i:4,j:64|iji'j'0") >> i("+ij~i|i:4,j:64|iji'j'0") >> i("$i~i|i:4|i0i'") & I) >> i("i+i~i|i:4|i1i'0")
