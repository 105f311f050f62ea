(I | i("ikl*ikj~iklj|j:64,k:64,l:4|ijklk'l'j'") >> i("+iklj~ilj|j:64,k:64,l:4|ijklk'l'j'0")) >> i("kil*klj~klij|i:6,j:64|kj1ili'j'") >> i("+klij~kij|i:6,j:64|kjili'j'0")
