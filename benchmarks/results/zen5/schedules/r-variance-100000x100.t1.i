(I & i("+ij~i|i:4,j:64|iji'j'") >> i("i/100~i|i:4|i0i'")) >> i("ij-i~ij|i:4,j:64|i1ji'j'") >> (I & I) >> i("ij*ij~ij|i:4,j:64|iji'j'01") >> i("+ij~i|i:4,j:64|iji'j'0") >> i("i/100~i|i:4|i0i'")
