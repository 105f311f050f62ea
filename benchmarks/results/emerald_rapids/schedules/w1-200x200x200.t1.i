i("ik*kj~kij|i:8,j:48|jiki'j'") >> i("+kij~ij|i:8,j:48|jiki'j'0")
