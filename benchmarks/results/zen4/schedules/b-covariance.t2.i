(I & i("+ki~i|i:64|iki'") >> i("i/8192~i|i:64|i0i'")) >> i("ki-i~ki|i:64,k:64|i1kk'i'") >> (I & I) >> i("ki*kj~kij|i:16:4,j:64,k:64|ikji'k'i''j'") >> i("+kij~ij|i:16:4,j:64,k:64|ikji'k'i''j'0")
