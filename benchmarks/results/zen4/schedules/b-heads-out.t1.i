(I | i("+klj~klj|j:48,l:64|jlkl'j'")) >> i("kil*klj~klij|i:8,j:48,l:64|jl1ikl'i'j'") >> i("+klij~ij|i:8,j:48,l:64|jlikl'i'j'0")
