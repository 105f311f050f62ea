i("ij-j~ij|i:6,j:8|iji'j'") >> (I & I) >> i("ij*ij~ij|i:6,j:8|iji'j'01") >> i("ij*j~ij|i:6,j:8|iji'j'0") >> i("+ij~i|i:6,j:8|iji'j'0")
