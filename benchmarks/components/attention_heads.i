scores = i("hik*hjk~hijk") >> i("+hijk~hij")
softmax = (I & i(">hij~hi")) >> i("hij-hi~hij") >> i("^hij~hij") >> (I & i("+hij~hi")) >> i("hij/hi~hij")
scores >> softmax >> i("hij*hjk~hikj") >> i("+hikj~hik")
