(I | i("+klj~klj|j:48|jklj'")) >> i("kil*klj~klij|i:8,j:48|j1ikli'j'") >> i("+klij~ij|i:8,j:48|jikli'j'0")
