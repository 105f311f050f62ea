i("ik*kj~kij|i:4:6,j:3:16,k:128|jkii'j'k'i''j''") >> i("+kij~ij|i:4:6,j:3:16,k:128|jkii'j'k'i''j''0")
