(I | i("+kj~kj|j:96|jkj'")) >> i("ik*kj~kij|i:2:6,j:6:16|iji'j'ki''j''") >> i("+kij~ij|i:2:6,j:6:16|iji'j'ki''j''0") >> i("ij*ij~ij|i:12|i0i'j") >> i("+ij~i|i:12|ii'j0")
