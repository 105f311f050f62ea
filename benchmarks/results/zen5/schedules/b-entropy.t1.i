(I & i(">ij~i|j:128|")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> (I & i("+ij~i||ij0")) >> i("ij/i~ij||i10j") >> (I & i("$ij~ij||ij0")) >> i("ij*ij~ij||ij01") >> i("+ij~i||ij0") >> i("-i~i||i0")
