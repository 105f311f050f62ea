i("ij+ji~ij|i:64,j:16|iji'j'")
