(I | i("+lkj~klj|j:64|jklj'")) >> i("ikl*klj~klij|i:6,j:64|jk1ili'j'") >> i("+klij~ij|i:6,j:64|jkili'j'0")
