i("ik*kj~kij|i:12,j:32|ijki'j'") >> i("+kij~ij|i:12,j:32|ijki'j'0")
