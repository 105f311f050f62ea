(I & i("+ij~i|i:6,j:8|iji'j'") >> i("i/100000~i|i:6|i0i'")) >> i("ij-i~ij|i:6|i1i'j") >> (I & I) >> i("ij*ij~ij|i:6|ii'j01") >> i("+ij~i|i:6|ii'j0") >> i("i/100000~i|i:6|i0i'")
