i("ki*kj~kij|i:8:6,j:16,k:16|ikji'k'i''j'") >> i("+kij~ij|i:8:6,j:16,k:16|ikji'k'i''j'0")
