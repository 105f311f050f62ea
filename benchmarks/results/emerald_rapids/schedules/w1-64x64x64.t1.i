i("ik*kj~kij|i:4,j:64|jiki'j'") >> i("+kij~ij|i:4,j:64|jiki'j'0")
