"""Operators against the C functions they stand for, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest

from ilang_eq.lang.ops import BY_SYMBOL, OPS, Op

VALUES = (-math.inf, -2.0, -0.5, 0.0, 0.5, 1.0, 3.0, math.inf, math.nan)


def _fmax(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else max(a, b)


def _fmin(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else min(a, b)


SCALAR: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "-": lambda a, b: a - b,
    ">": _fmax,
    "<": _fmin,
    ">>": lambda a, b: float(a > b),
    ">=": lambda a, b: float(a >= b),
    "<<": lambda a, b: float(a < b),
    "<=": lambda a, b: float(a <= b),
    "==": lambda a, b: float(a == b),
    "!=": lambda a, b: float(a != b),
    "&&": lambda a, b: float(bool(a) and bool(b)),
    "||": lambda a, b: float(bool(a) or bool(b)),
    "^^": lambda a, b: float(bool(a) != bool(b)),
}


@pytest.mark.parametrize("symbol", SCALAR)
def test_binary(symbol: str) -> None:
    for a in VALUES:
        for b in VALUES:
            with np.errstate(all="ignore"):
                got = BY_SYMBOL[symbol].apply(np.asarray(a), np.asarray(b))
            np.testing.assert_equal(float(got), SCALAR[symbol](a, b))


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.binary is not None], ids=lambda op: op.name)
def test_commutative(op: Op) -> None:
    pairs = [(np.asarray(a), np.asarray(b)) for a in VALUES for b in VALUES]
    with np.errstate(all="ignore"):
        same = all(np.array_equal(op.apply(a, b), op.apply(b, a), equal_nan=True) for a, b in pairs)
    assert op.commutative is same


def test_the_base_of_a_power_stands_on_the_left() -> None:
    assert BY_SYMBOL["^"].apply(np.asarray(2.0), np.asarray(3.0)) == 8


def test_the_base_of_a_logarithm_stands_on_the_left() -> None:
    assert BY_SYMBOL["$"].apply(np.asarray(2.0), np.asarray(8.0)) == pytest.approx(3)


def test_division() -> None:
    assert BY_SYMBOL["/"].apply(np.asarray(3.0), np.asarray(2.0)) == 1.5


UNARY: dict[str, Callable[[float], float]] = {
    **dict.fromkeys(("+", "*", ">", "<", "&&", "||", "^^"), lambda x: x),
    "-": lambda x: -x,
    "/": lambda x: 1 / x,
    "^": math.exp,
    "$": lambda x: math.log(x) if x > 0 else math.nan,
    ">>": lambda x: float(x > 0),
    ">=": lambda x: float(x >= 0),
    "<<": lambda x: float(x < 0),
    "<=": lambda x: float(x <= 0),
    "==": lambda x: float(x == 0),
    "!=": lambda x: float(x != 0),
    "!!": lambda x: float(x == 0),
}


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_unary(op) -> None:
    for x in (-2.0, -0.5, 0.25, 1.0, 3.0):
        with np.errstate(all="ignore"):
            got = op.unary(np.asarray(x))
        np.testing.assert_allclose(got, UNARY[op.symbol](x), rtol=1e-15)


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.reducible], ids=lambda op: op.name)
def test_a_reduction_folds_the_binary_form_from_the_identity(op) -> None:
    for row in ([2.0, 0.0, -3.0], [1.0, 4.0], [math.nan, 1.0], [math.nan], [5.0], []):
        assert op.identity is not None
        fold = reduce(SCALAR[op.symbol], row, op.identity)
        np.testing.assert_equal(float(op.reduce(np.array([row, row]), (1,))[0]), fold)


def test_a_reduction_over_two_axes() -> None:
    x = np.arange(24.0).reshape(2, 3, 4) - 7
    for op in OPS.values():
        if op.reducible:
            np.testing.assert_allclose(op.reduce(x, (0, 2)), op.reduce(op.reduce(x, (2,)), (0,)), rtol=1e-12)


def test_what_has_no_such_form() -> None:
    with pytest.raises(TypeError, match="no binary form"):
        OPS["not"].apply(np.zeros(1), np.zeros(1))
    with pytest.raises(TypeError, match="cannot reduce"):
        OPS["sub"].reduce(np.zeros(1), (0,))
