i("+ilk~ilk|k:64|iklk'") >> ~i("lj*ilk~ijlk|k:64,l:64|ik1ljl'k'") >> i("+ijlk~ijk|k:64,l:64|ikljl'k'0")
