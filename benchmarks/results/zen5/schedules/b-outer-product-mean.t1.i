(I | i("+mjl~mjl|l:16|lmjl'")) >> i("mik*mjl~ijmkl|k:16,l:16|l1kijmk'l'") >> i("+ijmkl~ijkl|k:16,l:16|lkijmk'l'0")
