(I | i("+jk~kj|j:256|jkj'")) >> (i("ik-kj~kij|i:6,j:4:64|j1ij'ki'j''") & ~i("kj-ik~kij|i:6,j:4:64|j0ij'ki'j''")) >> i("kij>kij~kij|i:6,j:4:64|jij'ki'j''01") >> i(">kij~ij|i:6,j:4:64|jij'ki'j''0")
