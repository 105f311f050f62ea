(I & i(">ijk~ik|j:4,k:32|ijkj'k'")) >> i("ijk-ik~ijk|k:32|i1kjk'") >> i("^ijk~ijk|k:32|ikjk'0") >> (I & i("+ijk~ik|j:4,k:32|ik0jj'k'")) >> i("ijk/ik~ijk|k:32|ik10jk'")
