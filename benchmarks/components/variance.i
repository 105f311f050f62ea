mean = i("+ij~i") >> i("i/4096~i")
(I & mean) >> i("ij-i~ij") >> (I & I) >> i("ij*ij~ij") >> mean
