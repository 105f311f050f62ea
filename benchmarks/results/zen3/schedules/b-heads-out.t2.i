(I | i("+klj~klj|j:64,l:64|jlkl'j'")) >> i("kil*klj~klij|i:2:6,j:4:16,l:64|jl1ii'j'kl'i''j''") >> i("+klij~ij|i:2:6,j:4:16,l:64|jlii'j'kl'i''j''0")
