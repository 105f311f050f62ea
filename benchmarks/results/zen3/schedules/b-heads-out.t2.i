(I | i("+klj~klj|j:64|jklj'")) >> i("kil*klj~klij|i:2:6,j:4:16|j1ii'j'kli''j''") >> i("+klij~ij|i:2:6,j:4:16|jii'j'kli''j''0")
