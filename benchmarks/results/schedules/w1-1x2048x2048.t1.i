i("ik*kj~ikj|j:128,k:64|ikjk'j'") >> i("+ikj~ij|j:128,k:64|ikjk'j'0")
