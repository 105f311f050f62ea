(i(">ij~i|i:4,j:16|iji'j'") & I) >> (~i("ij-i~ij|i:4|i1i'j") >> i("^ij~ij|i:4|ii'j0") >> i("+ij~i|i:4|ii'j0") >> i("$i~i|i:4|i0i'") & I) >> i("i+i~i|i:4|i1i'0")
