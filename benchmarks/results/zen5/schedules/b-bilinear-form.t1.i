(I | i("+kj~kj|j:32|jkj'")) >> i("ik*kj~kij|i:12,j:32|ijki'j'") >> i("+kij~ij|i:12,j:32|ijki'j'0") >> i("ij*ij~ij|i:12,j:32|ij0i'j'") >> i("+ij~i|i:12,j:32|iji'j'0")
