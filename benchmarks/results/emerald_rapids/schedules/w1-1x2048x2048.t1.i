i("ik*kj~ikj|j:128,k:24|ikjk'j'") >> i("+ikj~ij|j:128,k:24|ikjk'j'0")
