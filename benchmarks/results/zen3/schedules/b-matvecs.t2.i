(I | i("+ik~ik|i:4,k:16|iki'k'")) >> i("ijk*ik~jik|i:4,k:16|i1jki'k'") >> i("+jik~ij|i:4,k:16|ijki'k'0")
