i("ij*j~ij|i:256,j:64|iji'j'") >> i("+ij~i|i:256,j:64|iji'j'0")
