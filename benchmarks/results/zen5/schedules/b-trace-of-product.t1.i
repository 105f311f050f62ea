i("ij*ji~ji|i:12|iji'") >> i("+ji~.|i:12|iji'0")
