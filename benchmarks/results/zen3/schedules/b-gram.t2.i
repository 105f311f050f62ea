(I & i("+kj~kj|j:256,k:32|jkk'j'")) >> i("ki*kj~kij|i:16:6,j:16:16,k:32|jk1ii'j'k'i''j''") >> i("+kij~ij|i:16:6,j:16:16,k:32|jkii'j'k'i''j''0")
