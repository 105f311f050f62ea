(I & i(">ijk~ik|k:128|ikjk'")) >> i("ijk-ik~ijk|k:128|ikjk'") >> i("^ijk~ijk|k:128|ikjk'0") >> (I & i("+ijk~ik|k:4:32|ik0k'jk''")) >> i("ijk/ik~ijk|k:128|ik10jk'")
