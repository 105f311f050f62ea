i("ij*j~ij|i:8,j:16|iji'j'") >> i("+ij~i|i:8,j:16|iji'j'0")
