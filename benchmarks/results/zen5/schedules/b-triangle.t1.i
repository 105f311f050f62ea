i("+ilk~lik|i:8,k:16|ikli'k'") >> ~i("jlk*lik~lijk|i:8,j:4,k:16|i1jkli'j'k'") >> i("+lijk~ijk|i:8,j:4,k:16|ijkli'j'k'0")
