i("ij*ji~ij|i:8,j:8|iji'j'") >> i("+ij~.|i:8,j:8|iji'j'0")
