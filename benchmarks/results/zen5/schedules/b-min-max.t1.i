(I & i("<ij~j|j:1024|jij'")) >> (i("ij-j~ij|j:1024|j1ij'") & i("ij-j~ij|j:1024|ji1j'") >> i(">ij~j|j:1024|ji0j'")) >> i("ij/j~ij|j:1024|j1ij'0")
