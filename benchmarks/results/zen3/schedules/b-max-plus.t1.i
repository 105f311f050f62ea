i("ik+jk~jik|i:8|iji'k") >> i(">jik~ij|i:8|iji'k0")
