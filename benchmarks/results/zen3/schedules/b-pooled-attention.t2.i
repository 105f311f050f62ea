(I & i("ikj*j~ikj") >> i("+ikj~ik||ikj0") >> (I & i(">ik~i||i0k")) >> i("ik-i~ik||i01k") >> i("^ik~ik||ik0") >> (I & i("+ij~i")) >> i("ij/i~ij||i1j")) >> i("ikj*ik~ikj") >> i("+ikj~ij||ikj0")
