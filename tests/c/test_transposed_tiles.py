from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq import i

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

TRANSPOSED = i("+ik~ki|i:32|iki'") >> ~i("jk*ki~kji|i:32,j:6|i1jkj'i'") >> i("+kji~ij|i:32,j:6|ijkj'i'0")
"""A product in 6×32 tiles whose lanes run across the rows of the output."""


@pytest.mark.parametrize(
    ("rows", "width", "columns"), [(64, 40, 12), (64, 40, 13), (45, 7, 12), (45, 7, 13), (1, 1, 1)]
)
def test_a_tile_is_held_in_vectors_and_scattered(rows: int, width: int, columns: int) -> None:
    kernel = TRANSPOSED.compile(threads=1)
    assert "vec16" in kernel.source
    assert "scatter16(" in kernel.source
    assert "scatter_left16(" in kernel.source
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((n, width), dtype=np.float32) for n in (rows, columns))
    guarded = np.full(rows * columns + 64, 7.0, np.float32)
    out = guarded[: rows * columns].reshape(rows, columns)
    kernel(x, w, out=out)
    np.testing.assert_allclose(out, x @ w.T, rtol=1e-4, atol=1e-4)
    assert (guarded[rows * columns :] == 7.0).all()
