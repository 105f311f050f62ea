distance = i("ik-jk~ijk") >> (I & I) >> i("ijk*ijk~ijk") >> i("+ijk~ij")
distance >> i("-ij~ij") >> i("^ij~ij") >> i("ij*j~ij") >> i("+ij~i")
