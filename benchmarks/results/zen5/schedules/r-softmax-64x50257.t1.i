(I & i(">ij~i")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> (I & i("+ij~i|j:128|i0jj'")) >> i("ij/i~ij||i10j")
