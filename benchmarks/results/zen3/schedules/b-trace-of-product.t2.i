i("ij*ji~ij|i:24,j:8|iji'j'") >> i("+ij~.|i:24,j:8|iji'j'0")
