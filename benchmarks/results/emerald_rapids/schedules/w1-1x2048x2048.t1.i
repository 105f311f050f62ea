i("ik*kj~ikj|j:128,k:16|ikjk'j'") >> i("+ikj~ij|j:128,k:16|ikjk'j'0")
