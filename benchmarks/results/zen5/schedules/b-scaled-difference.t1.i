i("ij-j~ij") >> (I & I) >> i("ij*ij~ij||ij01") >> i("ij*j~ij||ij0") >> i("+ij~i||ij0")
