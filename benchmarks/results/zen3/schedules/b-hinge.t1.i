i("ij*j~ij|i:4,j:16|iji'j'") >> i("+ij~i|i:4,j:16|iji'j'0") >> i("i*i~i|i:4|") >> i("1-i~i|i:4|ii'1") >> i("0>i~i|i:4|ii'1") >> i("+i~.|i:4|ii'0")
