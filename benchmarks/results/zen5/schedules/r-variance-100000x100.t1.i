(I & i("+ij~i|i:16|") >> i("i/100~i|i:16|i0i'")) >> i("ij-i~ij|i:16,j:32|i1ji'j'") >> (I & I) >> i("ij*ij~ij|i:16,j:32|iji'j'01") >> i("+ij~i|i:16,j:32|iji'j'0") >> i("i/100~i|i:16|i0i'")
