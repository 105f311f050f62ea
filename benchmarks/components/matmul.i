i("ik*kj~ijk") >> i("+ijk~ij")
