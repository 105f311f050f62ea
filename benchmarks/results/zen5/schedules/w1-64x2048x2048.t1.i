(I | i("+kj~kj|j:96,k:96|jkk'j'")) >> i("ik*kj~kij|i:4:4,j:96,k:96|jk1ii'k'i''j'") >> i("+kij~ij|i:4:4,j:96,k:96|jkii'k'i''j'0")
