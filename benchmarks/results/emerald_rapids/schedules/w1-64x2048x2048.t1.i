i("+ik~ik|k:48|kik'") >> ~i("kj*ik~kij|i:8,j:48,k:48|k1jik'i'j'") >> i("+kij~ij|i:8,j:48,k:48|kjik'i'j'0")
