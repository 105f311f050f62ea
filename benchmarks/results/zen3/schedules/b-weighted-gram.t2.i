i("ki*k~ki|i:96,k:64|ikk'i'") >> i("ki*kj~kij|i:16:6,j:2:16,k:64|ik0ji'j'k'i''j''") >> i("+kij~ij|i:16:6,j:2:16,k:64|ikji'j'k'i''j''0")
