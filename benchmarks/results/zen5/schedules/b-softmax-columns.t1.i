(I & i(">ij~j||ij")) >> i("ij-j~ij") >> i("^ij~ij||ij0") >> (I & i("+ij~j||ij0")) >> i("ij/j~ij||ij0")
