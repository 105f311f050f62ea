i("+ij~.|i:6,j:64|iji'j'")
