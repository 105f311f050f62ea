(I & i(">ik~i|k:32|")) >> i("ik-i~ik||i1k") >> i("^ik~ik||ik0") >> (i("ik*ikj~ikj|j:64|i0jkj'") >> i("+ikj~ij|j:64|ijkj'0") & i("+ik~i||i0k")) >> i("ij/i~ij||i01j")
