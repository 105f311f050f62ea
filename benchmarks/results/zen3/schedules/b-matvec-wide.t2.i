i("ij*j~ij|i:6,j:8|iji'j'") >> i("+ij~i|i:6,j:8|iji'j'0")
