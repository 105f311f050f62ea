(I | i("+jk~kj|j:64,k:8|jkk'j'")) >> i("ik-kj~kij|i:6,j:4:16|ijj'ki'j''") >> (I & I) >> i("kij*kij~kij|i:6,j:4:16|ijj'ki'j''01") >> i("+kij~ij|i:6,j:4:16|ijj'ki'j''0") >> i("<ij~i|i:6,j:64|ij0i'j'")
