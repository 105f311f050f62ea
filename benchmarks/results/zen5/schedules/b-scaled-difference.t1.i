i("ij-j~ij|i:8,j:16|iji'j'") >> (I & I) >> i("ij*ij~ij|i:8,j:16|iji'j'01") >> i("ij*j~ij|i:8,j:16|iji'j'0") >> i("+ij~i|i:8,j:16|iji'j'0")
