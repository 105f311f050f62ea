i("+ji~i|i:128|iji'")
