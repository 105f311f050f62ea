(I & i("+ij~i|i:4,j:16|iji'j'") >> i("i/100000~i|i:4|")) >> i("ij-i~ij|i:4,j:16|i1ji'j'") >> (I & I) >> i("ij*ij~ij|i:4,j:16|iji'j'01") >> i("+ij~i|i:4,j:16|iji'j'0") >> i("i/100000~i")
