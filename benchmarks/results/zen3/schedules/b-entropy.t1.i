(I & i(">ij~i|i:4,j:16|iji'j'")) >> i("ij-i~ij") >> i("^ij~ij||ij0") >> (I & i("+ij~i")) >> i("ij/i~ij") >> (I & i("$ij~ij||ij0")) >> i("ij*ij~ij||ij01") >> i("+ij~i||ij0") >> i("-i~i")
