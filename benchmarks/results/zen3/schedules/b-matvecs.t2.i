(I | i("+ik~ik|i:4,k:32|iki'k'")) >> i("ijk*ik~ijk|i:4,j:4,k:32|i1jki'j'k'") >> i("+ijk~ij|i:4,j:4,k:32|ijki'j'k'0")
