(I | i("+ik~ik|k:128|")) >> i("ijk*ik~ijk|k:128|ik1jk'") >> i("+ijk~ij|k:128|ikjk'0")
