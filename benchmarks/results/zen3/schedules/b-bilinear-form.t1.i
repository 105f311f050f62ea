(I | i("+kj~jk|k:128|kjk'") >> ~i("ij*jk~jik|i:16:6,j:128,k:8:16|ijki'k'j'i''k''") >> i("+jik~ik|i:16:6,j:128,k:8:16|ijki'k'j'i''k''0")) >> i("ik*ik~ik|i:96|i1i'k") >> i("+ik~i|i:96|ii'k0")
