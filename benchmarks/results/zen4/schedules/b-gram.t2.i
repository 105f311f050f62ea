(I & i("+kj~kj|j:256,k:64|jkk'j'")) >> i("ki*kj~kij|i:16:6,j:4:64,k:64|jk1ii'j'k'i''j''") >> i("+kij~ij|i:16:6,j:4:64,k:64|jkii'j'k'i''j''0")
