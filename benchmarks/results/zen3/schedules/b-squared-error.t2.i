i("ij-ij~ij|i:4,j:24|iji'j'") >> (I & I) >> i("ij*ij~ij|i:4,j:24|iji'j'01") >> i("+ij~.|i:4,j:24|iji'j'0")
