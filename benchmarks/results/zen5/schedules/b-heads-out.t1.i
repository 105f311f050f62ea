(I | i("+klj~klj|j:128|jklj'")) >> i("kil*klj~klij|i:6,j:2:64|j1ij'kli'j''") >> i("+klij~ij|i:6,j:2:64|jij'kli'j''0")
