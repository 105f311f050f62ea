i("ik*kj~ikj|j:48,k:6|ikjk'j'") >> i("+ikj~ij|j:48,k:6|ikjk'j'0")
