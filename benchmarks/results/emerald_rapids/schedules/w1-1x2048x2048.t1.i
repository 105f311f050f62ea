i("ik*kj~ikj") >> i("+ikj~ij||ikj0")
