(I & i(">ij~i|i:24|")) >> i("ij-i~ij|i:24|i1i'j") >> i("^ij~ij|i:24|ii'j0") >> (I & i("+ij~i|i:24,j:16|i0ji'j'")) >> i("ij/i~ij|i:24|i10i'j")
