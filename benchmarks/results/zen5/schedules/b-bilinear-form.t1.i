(I | i("+kj~kj|j:64|jkj'")) >> i("ik*kj~kij|i:4:6,j:64|iji'ki''j'") >> i("+kij~ij|i:4:6,j:64|iji'ki''j'0") >> i("ij*ij~ij|i:24,j:64|ij0i'j'") >> i("+ij~i|i:24,j:64|iji'j'0")
