(I | i("+kj~jk|k:64|kjk'") >> ~i("ij*jk~jik|i:8:6,j:128,k:64|ijki'j'i''k'") >> i("+jik~ik|i:8:6,j:128,k:64|ijki'j'i''k'0")) >> i("ik*ik~ik|i:48|i1i'k") >> i("+ik~i|i:48|ii'k0")
