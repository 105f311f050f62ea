(I & i("<ij~j|j:256|jij'")) >> (i("ij-j~ij|j:256|j1ij'") & i("ij-j~ij|j:256|ji1j'") >> i(">ij~j|j:256|ji0j'")) >> i("ij/j~ij|j:256|j1ij'0")
