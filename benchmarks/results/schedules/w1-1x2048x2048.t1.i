i("ik*kj~ikj|j:256,k:48|ikjk'j'") >> i("+ikj~ij|j:256,k:48|ikjk'j'0")
