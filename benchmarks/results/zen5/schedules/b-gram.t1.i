(i("+kj~kj|j:32|jkj'") & i("+ki~ki|i:2:12|ii'ki''")) >> i("kj*ki~kij|i:2:12,j:32|j0ii'ki''j'") >> i("+kij~ij|i:2:12,j:32|jii'ki''j'0")
