linear = i("ik*kj~ijk") >> i("+ijk~ij") >> i("ij+j~ij")
linear >> i("0>ij~ij") >> linear
