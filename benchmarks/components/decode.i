scores = i("hk*hjk~hjk") >> i("+hjk~hj")
softmax = (I & i(">hj~h")) >> i("hj-h~hj") >> i("^hj~hj") >> (I & i("+hj~h")) >> i("hj/h~hj")
scores >> softmax >> i("hj*hjk~hkj") >> i("+hkj~hk")
