(I | i("+kj~kj")) >> i("ik*kj~kij|i:24,j:16|ijki'j'") >> i("+kij~ij|i:24,j:16|ijki'j'0")
