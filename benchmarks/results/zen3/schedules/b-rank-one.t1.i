(I | i("i*j~ij||ij")) >> i("ij+ij~ij||ij1")
