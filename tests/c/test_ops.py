"""Every op in a loop of vectors and a tail: as a unary expression, of two arrays, and with a number on either side."""

from __future__ import annotations

import functools
import operator
import shutil

import numpy as np
import pytest

from ilang_eq.lang.component import Component, i
from ilang_eq.lang.ops import OPS

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

BINARY = [op.symbol for op in OPS.values() if op.binary is not None]
UNARY = [i(f"{op.symbol}i~i") for op in OPS.values()]
LEFT = [i(f"{number}{symbol}i~i") for symbol in BINARY for number in ("0.5", "2", "10")]
RIGHT = [i(f"i{symbol}{number}~i") for symbol in BINARY for number in ("-2", "0.5", "3", "2.5")]


@pytest.mark.parametrize("cases", [UNARY, LEFT, RIGHT], ids=["unary", "number left", "number right"])
@pytest.mark.parametrize("split", ["", "|i:16|"], ids=["plain", "tiles"])
def test_one_operand(cases: list[Component], split: str) -> None:
    scheduled = [i(str(case)[3:-2] + split) for case in cases]
    component = functools.reduce(operator.and_, scheduled)
    x = np.linspace(0.1, 5, 53, dtype=np.float32)
    for case, got, want in zip(cases, component.compile()(x), component.interpret(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=str(case))


@pytest.mark.parametrize("split", ["", "|i:16|"], ids=["plain", "tiles"])
def test_two_operands(split: str) -> None:
    component = functools.reduce(operator.and_, [i(f"i{symbol}i~i{split}") for symbol in BINARY])
    x, y = np.linspace(0.1, 5, 53, dtype=np.float32), np.linspace(3, 0.2, 53, dtype=np.float32)
    for symbol, got, want in zip(BINARY, component.compile()(x, y), component.interpret(x, y), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=symbol)
