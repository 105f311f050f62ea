(i("+ki~ki|i:128,k:1024|ikk'i'") | i("+kj~kj|j:48,k:1024|kjk'j'")) >> ~i("kj*ki~kij|i:16:8,j:48,k:1024|ik1ji'k'i''j'") >> i("+kij~ij|i:16:8,j:48,k:1024|ikji'k'i''j'0")
