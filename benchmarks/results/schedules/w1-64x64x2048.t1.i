i("+ik~ik|i:64,k:16|iki'k'") >> ~i("kj*ik~kij|i:16:4,j:4:64|i1ji'j'ki''j''") >> i("+kij~ij|i:16:4,j:4:64|iji'j'ki''j''0")
