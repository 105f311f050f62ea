i("ij+ji~ij|i:256,j:256|iji'j'")
