i("ik+jk~jik|i:6,k:8|ijki'k'") >> i(">jik~ij|i:6,k:8|ijki'k'0")
