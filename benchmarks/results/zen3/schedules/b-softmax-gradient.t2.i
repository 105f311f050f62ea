(I & i(">ij~i|i:4,j:16|iji'j'")) >> i("ij-i~ij|i:4|i1i'j") >> i("^ij~ij|i:4|ii'j0") >> (I & i("+ij~i|i:4|i0i'j")) >> i("ij/i~ij|i:4|i10i'j") >> i("ij-ij~ij|i:4|ii'j0")
