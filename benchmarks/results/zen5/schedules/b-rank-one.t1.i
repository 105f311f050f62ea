(I | i("i*j~ij")) >> i("ij+ij~ij||ij1")
