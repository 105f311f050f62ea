i("ij+ji~ij|i:96,j:32|iji'j'")
