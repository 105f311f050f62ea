i("i*j~ij|i:256,j:256|iji'j'")
