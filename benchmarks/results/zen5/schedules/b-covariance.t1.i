(I & i("+ki~i|i:128|iki'") >> i("i/8192~i|i:128|i0i'")) >> i("ki-i~ki|i:128,k:48|i1kk'i'") >> (I & I) >> i("ki*kj~kij|i:16:8,j:32,k:48|jkii'k'i''j'") >> i("+kij~ij|i:16:8,j:32,k:48|jkii'k'i''j'0")
