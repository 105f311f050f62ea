i("ij-ij~ij|j:64|jij'") >> (I & (I | i("+jk~jk|k:64|kjk'")) >> i("ij*jk~jik|i:6,k:64|k1iji'k'") >> i("+jik~ik|i:6,k:64|kiji'k'0")) >> i("ij*ij~ij|i:6,j:64|iji'j'") >> i("+ij~i|i:6,j:64|iji'j'0")
