i("ij-ij~ij") >> (I & I) >> i("ij*ij~ij||ij01") >> i("+ij~.||ij0")
