i("ij*j~ij|i:8,j:64|iji'j'") >> i("+ij~i|i:8,j:64|iji'j'0")
