(I & i("+ij~i|i:16,j:128|iji'j'") >> i("i/100~i|i:16|i0i'")) >> i("ij-i~ij|i:16|i1i'j") >> (I & I) >> i("ij*ij~ij|i:16|ii'j01") >> i("+ij~i|i:16|ii'j0") >> i("i/100~i|i:16|i0i'")
