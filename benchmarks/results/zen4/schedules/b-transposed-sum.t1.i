i("ij+ji~ij|i:16,j:24|iji'j'")
