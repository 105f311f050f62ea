(I & i(">ij~i|i:12|")) >> i("ij-i~ij|i:12|i1i'j") >> i("^ij~ij|i:12|ii'j0") >> (I & i("+ij~i|i:12,j:16|i0ji'j'")) >> i("ij/i~ij|i:12|i10i'j")
