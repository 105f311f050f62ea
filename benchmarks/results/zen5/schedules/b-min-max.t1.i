(I & i("<ij~j||ij")) >> (i("ij-j~ij||1ij") & i("ij-j~ij||i1j") >> i(">ij~j||i0j")) >> i("ij/j~ij||1ij0")
