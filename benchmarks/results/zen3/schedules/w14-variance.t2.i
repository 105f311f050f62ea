(I & i("+ij~i|i:4,j:16|iji'j'") >> i("i/4096~i|i:4|i0i'")) >> i("ij-i~ij|i:4|i1i'j") >> (I & I) >> i("ij*ij~ij|i:4|ii'j01") >> i("+ij~i|i:4|ii'j0") >> i("i/4096~i|i:4|i0i'")
