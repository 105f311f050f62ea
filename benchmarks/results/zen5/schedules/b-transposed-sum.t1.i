i("ij+ji~ij|i:128,j:32|iji'j'")
