"""Rows divided by one number each: multiplied by its inverse where that is a normal number."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq.c.emit import emit
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

ROWS = (I & i(">ij~i")) >> i("ij/i~ij||i1j")
"""Divided by their maximum: the loop of the quotients is not alone, or it would be streamed."""


def source(component: Component) -> str:
    return emit(lower(wire(component)))


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("divisor", [3.0, -7.1, 1e-45, 1e-39, 3e38, 0.0, np.inf, 2.0**-126, 2.0**126, 2.0**127])
def test_every_kind_of_divisor(divisor: float) -> None:
    others = np.array(
        [[-0.0, 1, -3.7, -9, 1e-45, -1e-45, -1e-39, -3e38, 3e38, np.inf, -np.inf, 0.1, np.nan]], np.float32
    )
    x = np.minimum(np.float32(divisor), np.repeat(others, 2, axis=0))
    x[:, 3] = divisor
    # a zero of the other sign would be as good a maximum
    x[x == divisor] = divisor
    with np.errstate(all="ignore"):
        want = x / np.nanmax(x, axis=1, keepdims=True)
    got = ROWS.compile()(x)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), ~known)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))
    np.testing.assert_allclose(got, want, rtol=2e-7, atol=1.5e-45)


def test_where_there_is_an_inverse() -> None:
    assert "isnormal(inverse)" in source(ROWS)
    assert "inverse" not in source(i("ij/ij~ij") >> i("+ij~i||ij0")), "the divisor moves"
    assert "inverse" not in source(i("ij/20~ij||ij")), "the compiler knows the number"
