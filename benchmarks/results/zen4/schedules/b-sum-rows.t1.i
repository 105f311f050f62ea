i("+ij~i")
