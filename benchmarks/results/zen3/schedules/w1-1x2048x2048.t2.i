i("+ik~ik") >> ~i("kj*ik~ikj|j:32,k:4|i1kjk'j'") >> i("+ikj~ij|j:32,k:4|ikjk'j'0")
