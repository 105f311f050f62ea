i("ji*j~ji") >> i("+ji~i||ji0")
