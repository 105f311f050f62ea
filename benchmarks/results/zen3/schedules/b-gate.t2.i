(I | i("-ij~ij|i:6,j:128|iji'j'") >> i("^ij~ij|i:6,j:128|iji'j'0") >> i("ij+1~ij|i:6,j:128|iji'j'0")) >> i("ij/ij~ij|i:6,j:128|iji'j'1")
