i("+ij~.|i:6,j:16|iji'j'")
