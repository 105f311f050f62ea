(I & i(">ijk~ik|k:128|ikjk'")) >> i("ijk-ik~ijk|k:64|ikjk'") >> i("^ijk~ijk|k:64|ikjk'0") >> (I & i("+ijk~ik|k:2:32|ik0k'jk''")) >> i("ijk/ik~ijk|k:64|ik10jk'")
