i("i*i~i") >> i("i+i~i||i0") >> i("i/i~i||i0") >> i("^i~i||i0")
