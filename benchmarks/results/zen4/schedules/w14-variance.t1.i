(I & i("+ij~i|i:32|") >> i("i/4096~i|i:32|i0i'")) >> i("ij-i~ij|i:32|i1i'j") >> (I & I) >> i("ij*ij~ij|i:32|ii'j01") >> i("+ij~i|i:32|ii'j0") >> i("i/4096~i|i:32|i0i'")
