logsum = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> i("+ij~i") >> i("$i~i")
(logsum & i(">ij~i")) >> i("i+i~i")
