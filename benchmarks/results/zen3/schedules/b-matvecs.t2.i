i("ijk*ik~jik|i:4,k:16|ijki'k'") >> i("+jik~ij|i:4,k:16|ijki'k'0")
