scores = i("ik*jk~ijk") >> i("+ijk~ij")
softmax = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
scores >> softmax >> i("ij*jk~ikj") >> i("+ikj~ik")
