(I & i(">ijk~ik|j:4,k:4:32|ijkk'j'k''")) >> i("ijk-ik~ijk|k:128|i1kjk'") >> i("^ijk~ijk|k:128|ikjk'0") >> (I & i("+ijk~ik|j:4,k:4:32|ik0k'jj'k''")) >> i("ijk/ik~ijk|k:128|ik10jk'")
