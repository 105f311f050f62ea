i("ik*kj~ikj|j:48,k:32|ikjk'j'") >> i("+ikj~ij|j:48,k:32|ikjk'j'0")
