"""The scalar operators of 𝚒, as data: symbol, meaning in float64, unary form and reduction.

``a^b`` is a to the b and ``a$b`` the logarithm of b to the base a. ``max`` and ``min`` skip NaN, as C's fmax and fmin
do. Comparisons and logic give 1.0 or 0.0; any number other than zero, NaN included, is true.

Invariants:
  * an op reduces if and only if it has an ``identity``
  * ``binary`` is None for ``not`` alone, whose only form is unary
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as Choice
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

UnaryForm = Choice["copy", "default-left", "zero-right", "not"]
"""What the unary form computes: x, ``default`` op x, x op 0, or x == 0."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operator.

    Args:
        name: as ``Expr.op`` spells it.
        symbol: as 𝚒 text spells it.
        unary_form: what ``symbol x`` computes.
        binary: the elementwise meaning of ``x symbol y``.
        default: the left operand that the unary form supplies, where the language defines one.
        identity: the reduction's start, for an op that can reduce.
        ufunc: folds along axes, for an op that can reduce.
        commutative: whether x op y is y op x.
    """

    name: str
    symbol: str
    unary_form: UnaryForm
    binary: Callable[[Array, Array], Array] | None
    default: float | None = None
    identity: float | None = None
    ufunc: np.ufunc | None = None
    commutative: bool = False

    @property
    def reducible(self) -> bool:
        """May a unary expression with this op drop axes?"""
        return self.identity is not None

    def unary(self, x: Array) -> Array:
        """The unary form, elementwise, with no axis dropped."""
        match self.unary_form:
            case "copy":
                return x
            case "not":
                return (x == 0).astype(np.float64)
            case "zero-right":
                return self.apply(x, np.zeros(()))
            case "default-left":
                return self.apply(np.asarray(self.default, dtype=np.float64), x)
            case other:
                assert_never(other)

    def apply(self, x: Array, y: Array) -> Array:
        """x op y, elementwise with NumPy broadcasting."""
        if self.binary is None:
            raise TypeError(f"{self.symbol} has no binary form")
        return self.binary(x, y)

    def reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        """Fold dimensions ``axes`` of x, starting from ``identity``."""
        if self.ufunc is None:
            raise TypeError(f"{self.symbol} cannot reduce")
        if self.ufunc in _LOGICAL:
            return np.asarray(self.ufunc.reduce(x != 0, axis=axes), dtype=np.float64)
        return np.asarray(self.ufunc.reduce(x, axis=axes, initial=self.identity), dtype=np.float64)


_LOGICAL = (np.logical_and, np.logical_or, np.logical_xor)


def _power(base: Array, exponent: Array) -> Array:
    """e to the x through exp, which is more accurate than a power of the rounded e."""
    if base.ndim == 0 and base == math.e:
        return np.exp(exponent)
    return np.power(base, exponent)


def _logarithm(base: Array, x: Array) -> Array:
    if base.ndim == 0 and base == math.e:
        return np.log(x)
    return np.log(x) / np.log(base)


def _truth(ufunc: np.ufunc) -> Callable[[Array, Array], Array]:
    """A predicate as 1.0 or 0.0."""
    return lambda x, y: np.asarray(ufunc(x, y), dtype=np.float64)


_TABLE = (
    Op("add", "+", "copy", np.add, 0.0, 0.0, np.add, commutative=True),
    Op("mul", "*", "copy", np.multiply, 1.0, 1.0, np.multiply, commutative=True),
    Op("sub", "-", "default-left", np.subtract, 0.0),
    Op("div", "/", "default-left", np.divide, 1.0),
    Op("max", ">", "copy", np.fmax, -math.inf, -math.inf, np.fmax, commutative=True),
    Op("min", "<", "copy", np.fmin, math.inf, math.inf, np.fmin, commutative=True),
    Op("pow", "^", "default-left", _power, math.e),
    Op("log", "$", "default-left", _logarithm, math.e),
    Op("gt", ">>", "zero-right", _truth(np.greater)),
    Op("ge", ">=", "zero-right", _truth(np.greater_equal)),
    Op("lt", "<<", "zero-right", _truth(np.less)),
    Op("le", "<=", "zero-right", _truth(np.less_equal)),
    Op("eq", "==", "zero-right", _truth(np.equal), commutative=True),
    Op("ne", "!=", "zero-right", _truth(np.not_equal), commutative=True),
    Op("and", "&&", "copy", _truth(np.logical_and), None, 1.0, np.logical_and, commutative=True),
    Op("or", "||", "copy", _truth(np.logical_or), None, 0.0, np.logical_or, commutative=True),
    Op("xor", "^^", "copy", _truth(np.logical_xor), None, 0.0, np.logical_xor, commutative=True),
    Op("not", "!!", "not", None),
)

OPS: dict[str, Op] = {op.name: op for op in _TABLE}
"""Every operator by name."""

BY_SYMBOL: dict[str, Op] = {op.symbol: op for op in _TABLE}
"""Every operator by symbol."""
