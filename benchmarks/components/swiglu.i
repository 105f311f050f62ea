matmul = i("ik*kj~ijk") >> i("+ijk~ij")
rms = (I & I) >> i("ij*ij~ij") >> i("+ij~i") >> i("i/1024~i") >> i("i+0.00001~i") >> i("i^0.5~i")
rmsnorm = (I & rms) >> i("ij/i~ij") >> i("ij*j~ij")
silu = (I & (i("-ij~ij") >> i("^ij~ij") >> i("ij+1~ij"))) >> i("ij/ij~ij")
rmsnorm >> ((matmul >> silu) & I) >> (I | matmul) >> i("ij*ij~ij") >> matmul
