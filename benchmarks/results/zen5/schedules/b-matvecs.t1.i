i("ijk*ik~ijk|k:128|ikjk'") >> i("+ijk~ij|k:128|ikjk'0")
