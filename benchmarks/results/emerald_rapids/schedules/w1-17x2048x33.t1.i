i("ik*kj~kij|i:6,j:48|ijki'j'") >> i("+kij~ij|i:6,j:48|ijki'j'0")
