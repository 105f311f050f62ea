"""Optimises attention and writes it as a C library: ``python examples/deploy/export_attention.py build``.

Then, in ``build``:

    cc -std=c11 -O3 -march=native -ffp-contract=fast -fopenmp-simd -shared -fPIC attention.c -lm -o libattention.so
    python ../examples/deploy/call_from_python.py ./libattention.so
    rustc -O ../examples/deploy/call_from_rust.rs -L . -l attention && LD_LIBRARY_PATH=. ./call_from_rust

``attention.json`` lists the flags that make it fastest; ``main.c`` calls it from C.
"""

from __future__ import annotations

import sys

from ilang_eq import I, i, optimize

scores = i("ik*jk~ijk") >> i("+ijk~ij")
softmax = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
attention = scores >> softmax >> i("ij*jk~ikj") >> i("+ikj~ik")

if __name__ == "__main__":
    best = optimize(attention, shapes=[(256, 64)] * 3)
    best.export(sys.argv[1], name="attention", overwrite=True)
