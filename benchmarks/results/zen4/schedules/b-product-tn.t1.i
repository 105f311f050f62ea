(I | i("+kj~kj|j:96,k:1024|jkk'j'")) >> i("ki*kj~kij|i:16:4,j:96,k:1024|jk1ii'k'i''j'") >> i("+kij~ij|i:16:4,j:96,k:1024|jkii'k'i''j'0")
