(I & i("+ij~i|i:48|") >> i("i/4096~i|i:48|i0i'")) >> i("ij-i~ij|i:48|i1i'j") >> (I & I) >> i("ij*ij~ij|i:48|ii'j01") >> i("+ij~i|i:48|ii'j0") >> i("i/4096~i|i:48|i0i'")
