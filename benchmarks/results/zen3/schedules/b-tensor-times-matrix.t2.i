i("ilk*lj~ijlk|k:64,l:32|ikljl'k'") >> i("+ijlk~ijk|k:64,l:32|ikljl'k'0")
