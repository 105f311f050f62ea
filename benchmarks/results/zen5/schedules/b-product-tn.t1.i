(i("+ki~ki|i:8:8,k:1024|kii'k'i''") | i("+kj~kj|j:48,k:1024|jkk'j'")) >> ~i("kj*ki~kij|i:8:8,j:48,k:1024|jk0ii'k'i''j'") >> i("+kij~ij|i:8:8,j:48,k:1024|jkii'k'i''j'0")
