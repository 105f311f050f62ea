i("ik*kj~kij|i:8,j:32|ijki'j'") >> i("+kij~ij|i:8,j:32|ijki'j'0")
