i("ik*kj~ikj|j:32,k:4|ikjk'j'") >> i("+ikj~ij|j:32,k:4|ikjk'j'0")
