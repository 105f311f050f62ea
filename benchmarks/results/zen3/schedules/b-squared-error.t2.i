i("ij-ij~ij|i:6,j:48|iji'j'") >> (I & I) >> i("ij*ij~ij|i:6,j:48|iji'j'01") >> i("+ij~.|i:6,j:48|iji'j'0")
