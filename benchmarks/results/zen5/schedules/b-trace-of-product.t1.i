i("ij*ji~ij|i:128,j:24|iji'j'") >> i("+ij~.|i:128,j:24|iji'j'0")
