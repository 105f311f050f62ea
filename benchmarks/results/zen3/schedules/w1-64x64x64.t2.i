i("ik*kj~kij|i:8:6,j:4:16|iji'j'ki''j''") >> i("+kij~ij|i:8:6,j:4:16|iji'j'ki''j''0")
