(I & i("ji*i~ji|i:128|") >> i("+ji~j|i:128|jii'0")) >> i("ji*j~ji||j1i") >> i("+ji~i||ji0")
