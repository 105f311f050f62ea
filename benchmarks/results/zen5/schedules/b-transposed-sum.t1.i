i("ij+ji~ij|i:24,j:256|iji'j'")
