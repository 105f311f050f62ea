i("i*i~i") >> i("i+i~i") >> i("i/i~i") >> i("^i~i")
