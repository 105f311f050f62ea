(I | i("+kj~jk|k:16|kjk'") >> ~i("ij*jk~jik|i:2:6,k:16|iki'ji''k'") >> i("+jik~ik|i:2:6,k:16|iki'ji''k'0")) >> i("ik*ik~ik|i:12|i1i'k") >> i("+ik~i|i:12|ii'k0")
