(I | i("+jk~kj|j:96|jkj'")) >> i("ik-kj~kij|i:6,j:6:16|j1ij'ki'j''") >> (I & I) >> i("kij*kij~kij|i:6,j:6:16|jij'ki'j''01") >> i("+kij~ij|i:6,j:6:16|jij'ki'j''0")
