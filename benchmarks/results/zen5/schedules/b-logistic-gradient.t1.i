(I & i("ji*i~ji") >> i("+ji~j||ji0") >> i("-j~j||j0") >> i("^j~j||j0") >> i("j+1~j||j0") >> i("1/j~j||j1") >> i("j-j~j||j0")) >> i("ji*j~ji||j1i") >> i("+ji~i||ji0")
