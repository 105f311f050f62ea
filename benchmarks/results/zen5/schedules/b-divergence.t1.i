(I & (i("$ij~ij") | i("$ij~ij")) >> i("ij-ij~ij||ij01")) >> i("ij*ij~ij||ij1") >> i("+ij~i||ij0")
