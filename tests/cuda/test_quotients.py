"""Products with a reciprocal for quotients, wherever that is a normal number."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq import I, i
from ilang_eq.cuda.emit import emit
from tests.cuda.emulator import Emulated
from tests.cuda.schedules import program

SHARES_OF_ROWS = (I & i("+ij~i|i:1,j:64|iji'j'")) >> i("ij/i~ij|i:1|i1i'j")


def test_rows_are_multiplied_by_a_reciprocal() -> None:
    source = emit(program(SHARES_OF_ROWS)).source
    assert "= in0_run[j_lane] * inverse;" in source
    assert "= in0_run[j_lane] / add0[i1];" in source, "where the reciprocal is no normal number"


def test_a_divisor_that_the_loop_moves_stays_one() -> None:
    assert "inverse" not in emit(program(i("ij/j~ij"))).source
    assert "inverse" not in emit(program(i("ij/i~ij"))).source, "it lies in memory, and may be anything"


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_rows_with_sums_of_every_kind() -> None:
    """Sums whose reciprocal is too large, too small, infinite, zero, or not a number."""
    tiny, huge, far = 1e-42, 1.5e38, np.inf
    rows = [
        [1, 2, 4],
        [tiny, tiny, 2 * tiny],
        [huge, huge, 0],
        [0, 0, 0],
        [far, 1, 0],
        [np.nan, 1, 2],
        [-1, 1, 0],
        [-3, 1, 1],
    ]
    x = np.zeros((len(rows), 70), np.float32)
    x[:, [0, 40, 69]] = rows
    (got,) = Emulated([program(SHARES_OF_ROWS)]).run(0, [x])
    with np.errstate(all="ignore"):
        wanted = x / x.sum(1, dtype=np.float32, keepdims=True)
    np.testing.assert_allclose(got, wanted, rtol=3e-7)
