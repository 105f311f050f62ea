(I & i("ji*i~ji") >> i("+ji~j||ji0")) >> i("ji*j~ji||j1i") >> i("+ji~i||ji0")
