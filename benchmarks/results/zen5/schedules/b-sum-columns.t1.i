i("+ji~i||ji")
