i("ik*kj~ikj|j:256,k:32|ikjk'j'") >> i("+ikj~ij|j:256,k:32|ikjk'j'0")
