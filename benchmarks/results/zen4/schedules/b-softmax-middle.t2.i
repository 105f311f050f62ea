(I & i(">ijk~ik|j:512,k:128|ijkj'k'")) >> i("ijk-ik~ijk|k:128|i1kjk'") >> i("^ijk~ijk|k:128|ikjk'0") >> (I & i("+ijk~ik|j:512,k:128|ik0jj'k'")) >> i("ijk/ik~ijk|k:128|ik10jk'")
