(I & i(">ij~i")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> (I & i("+ij~i||i0j")) >> i("ij/i~ij||i10j")
