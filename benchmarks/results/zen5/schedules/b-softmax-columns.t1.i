(I & i(">ij~j|j:256|jij'")) >> i("ij-j~ij|j:256|j1ij'") >> i("^ij~ij|j:256|jij'0") >> (I & i("+ij~j|j:256|j0ij'")) >> i("ij/j~ij|j:256|j10ij'")
