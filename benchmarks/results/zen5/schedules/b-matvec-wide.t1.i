i("ij*j~ij|i:8,j:32|iji'j'") >> i("+ij~i|i:8,j:32|iji'j'0")
