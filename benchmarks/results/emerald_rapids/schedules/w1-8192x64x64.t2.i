i("+ik~ik|i:12,k:64|iki'k'") >> ~i("kj*ik~kij|i:12,j:32,k:64|ik1jk'i'j'") >> i("+kij~ij|i:12,j:32,k:64|ikjk'i'j'0")
