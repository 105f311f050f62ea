i("+ij~.|i:6,j:48|iji'j'")
