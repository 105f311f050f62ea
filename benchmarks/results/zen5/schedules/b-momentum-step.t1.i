(I | (I | i("ij^0.5~ij") >> i("ij+1e-8~ij||ij0")) >> i("ij/ij~ij||ij1")) >> i("ij-ij~ij||ij1")
