"""The larger of a value and its negative is its absolute value."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.component import I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.absolute import absolute_values
from ilang_eq.lower.check import check
from ilang_eq.lower.ir import (
    Accumulate,
    Apply,
    Assign,
    Comment,
    Constant,
    Declare,
    Extent,
    For,
    Index,
    Load,
    Scalar,
    Statement,
)
from ilang_eq.lower.walk import updates
from tests.lower.execute import execute

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

X, Y, OUT = (Load(name, (Index(("i",)),)) for name in ("x", "y", "out"))
S, T = Load("s", ()), Load("t", ())
DIFFERENCE, OPPOSITE = Apply("sub", (X, Y)), Apply("sub", (Y, X))
DISTANCES = (i("ik-jk~kij") & ~i("jk-ik~kij")) >> i("kij>kij~kij||kij01") >> i("+kij~ij||kij0")
NUMBERS = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-42, -1e-42], np.float32)


def _larger(x: Scalar, y: Scalar) -> Apply:
    return Apply("max", (x, y))


def _block(first: Scalar, second: Scalar, value: Scalar, *between: Statement) -> tuple[Statement, ...]:
    return Declare("s"), Assign(S, first), *between, Declare("t"), Assign(T, second), Assign(OUT, value)


@pytest.mark.parametrize("value", [_larger(S, T), _larger(T, S)])
def test_differences_both_ways(value: Apply) -> None:
    kept, *_ = value.arguments
    assert isinstance(kept, Load)
    found = absolute_values(_block(DIFFERENCE, OPPOSITE, value))
    first = DIFFERENCE if kept == S else OPPOSITE
    assert found == (Declare(kept.buffer), Assign(kept, first), Assign(OUT, Apply("abs", (kept,))))


@pytest.mark.parametrize("value", [_larger(S, T), _larger(T, S)])
def test_a_value_and_its_negative(value: Apply) -> None:
    found = absolute_values(_block(X, Apply("sub", (Constant(0.0), S)), value))
    assert found == (Declare("s"), Assign(S, X), Assign(OUT, Apply("abs", (S,))))


def test_an_argument_and_its_negative() -> None:
    block = Declare("t"), Assign(T, Apply("sub", (Constant(0.0), X))), Assign(OUT, _larger(X, T))
    assert absolute_values(block) == (Assign(OUT, Apply("abs", (X,))),)


def test_a_negative_that_is_read_elsewhere_stays() -> None:
    block = (*_block(DIFFERENCE, OPPOSITE, _larger(S, T)), Accumulate(Load("sum", ()), "add", T))
    assert absolute_values(block) == (*block[:-2], Assign(OUT, Apply("abs", (S,))), block[-1])


def test_a_negative_of_the_block_around_stays() -> None:
    block = tuple(s for s in _block(DIFFERENCE, OPPOSITE, _larger(S, T)) if s != Declare("t"))
    assert absolute_values(block) == (*block[:-1], Assign(OUT, Apply("abs", (S,))))


@pytest.mark.parametrize(
    "between",
    [
        Accumulate(X, "add", Constant(1.0)),
        Assign(Y, Constant(1.0)),
        Assign(S, Y),
        For("j", Extent(0, 0), 1, None, (), (Assign(Load("x", (Index(("j",)),)), Constant(1.0)),)),
    ],
)
def test_what_has_changed_since_is_not_the_negative(between: Statement) -> None:
    block = _block(DIFFERENCE, OPPOSITE, _larger(S, T), between)
    assert absolute_values(block) == block


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (DIFFERENCE, DIFFERENCE),
        (DIFFERENCE, Apply("add", (Y, X))),
        (X, Apply("sub", (Constant(1.0), S))),
        (X, Apply("sub", (S, Constant(0.0)))),
    ],
)
def test_others_are_compared(first: Scalar, second: Scalar) -> None:
    block = (*_block(first, second, _larger(S, T)), Comment("as it was"))
    assert absolute_values(block) == block


def test_distances_take_one_difference() -> None:
    program = lower(wire(DISTANCES))
    check(program)
    ops = [s.value.op for s in updates(program.kernels[0].body) if isinstance(s.value, Apply)]
    assert ops == ["sub", "abs"]
    locals_ = [buffer.name for buffer in program.buffers if buffer.role == "local"]
    assert sorted(locals_) == ["max2", "sub0"]


def test_both_kinds_of_zero_and_what_is_not_finite() -> None:
    component = (I & i("-i~i")) >> i("i>i~i||i1")
    (found,) = execute(lower(wire(component)), [NUMBERS.astype(np.float64)])
    np.testing.assert_array_equal(found, np.abs(NUMBERS.astype(np.float64)))


@needs_compiler
@pytest.mark.parametrize("schedule", ["i:16|ii'1", "|i1"])
def test_compiled(schedule: str) -> None:
    component = (I & i("-i~i|" + ("i:16|" if ":" in schedule else "|"))) >> i(f"i>i~i|{schedule}")
    kernel = CKernel(lower(wire(component)))
    assert "fabsf" in kernel.source
    numbers = np.tile(NUMBERS, 7)
    np.testing.assert_array_equal(kernel(numbers), np.abs(numbers))


@needs_compiler
def test_compiled_distances() -> None:
    x, y = (np.random.default_rng(n).standard_normal((9 + n, 5), dtype=np.float32) for n in (0, 1))
    expected = np.abs(x[:, None].astype(np.float64) - y).sum(2)
    np.testing.assert_allclose(CKernel(lower(wire(DISTANCES)))(x, y), expected, rtol=1e-6)
