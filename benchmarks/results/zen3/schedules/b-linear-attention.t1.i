(I | i("ikl*ikj~iklj|j:4:16,k:48,l:2:6|ijkll'j'k'l''j''") >> i("+iklj~ilj|j:4:16,k:48,l:2:6|ijkll'j'k'l''j''0")) >> i("kil*klj~klij|i:6,j:4:16|kj1ij'li'j''") >> i("+klij~kij|i:6,j:4:16|kjij'li'j''0")
