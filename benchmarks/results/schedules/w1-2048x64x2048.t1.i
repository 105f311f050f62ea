i("+ik~ik|i:12,k:64|iki'k'") >> ~i("kj*ik~kij|i:2:6,j:2:64|i1ji'j'ki''j''") >> i("+kij~ij|i:2:6,j:2:64|iji'j'ki''j''0")
