i("+ik~ik") >> ~i("kj*ik~ikj|j:128,k:16|i1kjk'j'") >> i("+ikj~ij|j:128,k:16|ikjk'j'0")
