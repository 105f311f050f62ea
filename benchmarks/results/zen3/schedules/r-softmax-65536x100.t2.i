(I & i(">ij~i|i:6|")) >> i("ij-i~ij|i:6|i1i'j") >> i("^ij~ij|i:6|ii'j0") >> (I & i("+ij~i|i:6,j:8|i0ji'j'")) >> i("ij/i~ij|i:6|i10i'j")
