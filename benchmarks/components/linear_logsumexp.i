scores = i("ik*jk~ijk") >> i("+ijk~ij")
logsum = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> i("+ij~i") >> i("$i~i")
scores >> (logsum & i(">ij~i")) >> i("i+i~i")
