mean = i("+ij~i") >> i("i/1024~i")
variance = (I & I) >> i("ij*ij~ij") >> mean
centred = (I & mean) >> i("ij-i~ij")
layernorm = centred >> (I & (variance >> i("i+0.00001~i") >> i("i^0.5~i"))) >> i("ij/i~ij") >> i("ij*j~ij") >> i("ij+j~ij")
layernorm >> i("ik*kj~ijk") >> i("+ijk~ij")
