(I | (I | i("ij^0.5~ij|i:4,j:48|iji'j'") >> i("ij+1e-8~ij|i:4,j:48|iji'j'0")) >> i("ij/ij~ij|i:4,j:48|iji'j'1")) >> i("ij-ij~ij|i:4,j:48|iji'j'1")
