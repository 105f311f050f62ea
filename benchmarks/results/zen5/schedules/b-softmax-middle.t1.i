(I & i(">ijk~ik|k:128|ikjk'")) >> i("ijk-ik~ijk|k:128|i1kjk'") >> i("^ijk~ijk|k:128|ikjk'0") >> (I & i("+ijk~ik|k:128|ik0jk'")) >> i("ijk/ik~ijk|k:128|ik10jk'")
