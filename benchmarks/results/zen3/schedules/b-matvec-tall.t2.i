i("ij*j~ij|i:4,j:16|iji'j'") >> i("+ij~i|i:4,j:16|iji'j'0")
