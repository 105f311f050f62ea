i(">ji~i||ji")
