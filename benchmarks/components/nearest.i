i("ik-jk~ijk") >> (I & I) >> i("ijk*ijk~ijk") >> i("+ijk~ij") >> i("ij^0.5~ij") >> i("<ij~i")
