(I | i("+kj~kj|j:48|jkj'")) >> i("ik*kj~kij|i:2:6,j:3:16|j1ii'j'ki''j''") >> i("+kij~ij|i:2:6,j:3:16|jii'j'ki''j''0") >> (I & I) >> i("ij*ij~ij|i:12,j:48|ji01i'j'") >> i("+ij~.|i:12,j:48|jii'j'0")
