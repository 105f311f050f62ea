(I & i(">ij~i|i:4,j:64|iji'j'")) >> i("ij-i~ij|i:4,j:64|i1ji'j'") >> i("^ij~ij|i:4,j:64|iji'j'0") >> (I & i("+ij~i|i:4,j:64|i0ji'j'")) >> i("ij/i~ij|i:4,j:64|i10ji'j'")
