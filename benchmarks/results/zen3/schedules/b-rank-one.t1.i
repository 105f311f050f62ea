(I | i("i*j~ij|i:6,j:128|iji'j'")) >> i("ij+ij~ij|i:6,j:128|iji'j'1")
