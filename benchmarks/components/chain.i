matmul = i("ik*kj~ijk") >> i("+ijk~ij")
matmul >> matmul >> matmul >> i("ij*j~ij") >> i("+ij~i")
