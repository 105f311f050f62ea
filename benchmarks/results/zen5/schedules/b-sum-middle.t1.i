i("+ikj~ij|j:512|ijkj'")
