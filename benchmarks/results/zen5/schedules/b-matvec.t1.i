i("ij*j~ij") >> i("+ij~i||ij0")
