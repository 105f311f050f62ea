i("i*j~ij")
