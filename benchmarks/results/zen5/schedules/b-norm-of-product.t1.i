(I | i("+kj~kj|j:48|jkj'")) >> i("ik*kj~kij|i:8,j:48|j1iki'j'") >> i("+kij~ij|i:8,j:48|jiki'j'0") >> (I & I) >> i("ij*ij~ij|i:8,j:48|ji01i'j'") >> i("+ij~.|i:8,j:48|jii'j'0")
