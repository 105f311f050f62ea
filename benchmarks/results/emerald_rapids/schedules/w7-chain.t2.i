(I | (I | (I | i("kj*j~kj") >> i("+kj~k||kj0")) >> i("lk*k~lk") >> i("+lk~l||lk0")) >> i("ml*l~ml") >> i("+ml~m||ml0")) >> i("im*m~im") >> i("+im~i||im0")
