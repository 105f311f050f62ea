i("+ik~ik|i:4,k:64|iki'k'") >> ~i("kj*ik~kij|i:4,j:64|i1jki'j'") >> i("+kij~ij|i:4,j:64|ijki'j'0")
