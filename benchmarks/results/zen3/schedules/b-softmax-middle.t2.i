(I & i(">ijk~ik|k:128|ikjk'")) >> i("ijk-ik~ijk|j:8,k:64|ikjj'k'") >> i("^ijk~ijk|j:8,k:64|ikjj'k'0") >> (I & i("+ijk~ik|k:2:32|ik0k'jk''")) >> i("ijk/ik~ijk|k:64|ik10jk'")
