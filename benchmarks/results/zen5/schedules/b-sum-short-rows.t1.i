i("+ji~i|i:256|iji'")
