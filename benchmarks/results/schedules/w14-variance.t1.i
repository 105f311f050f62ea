(I & i("+ij~i|i:8,j:32|iji'j'") >> i("i/4096~i|i:8|i0i'")) >> i("ij-i~ij|i:8|i1i'j") >> (I & I) >> i("ij*ij~ij|i:8|ii'j01") >> i("+ij~i|i:8|ii'j0") >> i("i/4096~i|i:8|i0i'")
