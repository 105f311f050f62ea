(I | i("+kj~jk|k:64|kjk'") >> ~i("ij*jk~jik|i:8:6,k:4:16|iki'k'ji''k''") >> i("+jik~ik|i:8:6,k:4:16|iki'k'ji''k''0")) >> i("ik*ik~ik|i:48|i1i'k") >> i("+ik~i|i:48|ii'k0")
