(I | i("-ij~ij") >> i("^ij~ij||ij0") >> i("ij+1~ij||ij0")) >> i("ij/ij~ij||ij1")
