(i(">ji~i|i:256,j:24|ijj'i'") & I) >> (~i("ji-i~ji|i:256,j:24|ij1j'i'") >> i("^ji~ji|i:256,j:24|ijj'i'0") >> i("+ji~i|i:256,j:24|ijj'i'0") >> i("$i~i|i:256|i0i'") & I) >> i("i+i~i|i:256|i1i'0")
