i("ij*ji~ij|i:16,j:8|iji'j'") >> i("+ij~.|i:16,j:8|iji'j'0")
