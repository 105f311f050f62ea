i("ij*j~ij") >> i("+ij~i||ij0") >> i("i*i~i||i0") >> i("1-i~i||i1") >> i("0>i~i||i1") >> i("+i~.||i0")
