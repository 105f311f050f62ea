"""Sums of rows, several at a time."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq.c.binding import bind
from ilang_eq.c.emit import emit
from ilang_eq.c.jam import LONG, TOGETHER
from ilang_eq.c.nodes import Jam
from ilang_eq.extract.leaves import JAMMED
from ilang_eq.lang.component import Component, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Accumulate, Kernel
from ilang_eq.lower.passes import FAR
from tests.c.programs import K, N, apply, at, loop

MIDDLE = i("+ikj~ij||ikj")
WEIGHTED = i("k*kj~kj") >> i("+kj~j||kj0")


def source(component: Component) -> str:
    return emit(lower(wire(component)))


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("k", [1, 3, 4, 5, 19])
@pytest.mark.parametrize("j", [1, 37, LONG - 1, LONG, LONG + 9])
def test_terms_come_in_order(k: int, j: int) -> None:
    """To the last bit, however long rows are."""
    x = np.random.default_rng(k).standard_normal((3, k, j), dtype=np.float32)
    want = np.zeros((3, j), np.float32)
    for row in range(k):
        want += x[:, row]
    np.testing.assert_array_equal(MIDDLE.compile(threads=1)(x), want)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(("k", "j"), [(FAR // 256, 256), (FAR // 256 + 3, 256), (FAR // LONG + 3, LONG)])
def test_on_both_sides_of_what_caches_hold(k: int, j: int) -> None:
    x = np.random.default_rng(k).integers(-9, 9, (1, k, j)).astype(np.float32)
    np.testing.assert_array_equal(MIDDLE.compile(threads=1)(x), x.sum(axis=1))


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("op", ["+", ">", "<", "*"])
def test_every_reduction(op: str) -> None:
    x = np.random.default_rng(1).uniform(0.5, 1.5, (2, 11, 40)).astype(np.float32)
    component = i(f"{op}ikj~ij||ikj")
    np.testing.assert_allclose(component.compile(threads=1)(x), component.interpret(x), rtol=1e-6)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_weighted_rows() -> None:
    rng = np.random.default_rng(2)
    w, x = rng.standard_normal(23, dtype=np.float32), rng.standard_normal((23, 600), dtype=np.float32)
    np.testing.assert_allclose(WEIGHTED.compile(threads=1)(w, x), w @ x, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_two_sums_in_one_loop() -> None:
    both = (i("+ikj~ij||ikj") & i(">ikj~ij||ikj")) >> i("ij-ij~ij||i01j")
    x = np.random.default_rng(3).standard_normal((2, 9, 700), dtype=np.float32)
    assert "max1_sum = larger(in0[(i * in0_1 + k + 3) * in0_2 + j], max1_sum);" in source(both)
    np.testing.assert_allclose(both.compile(threads=1)(x), x.sum(axis=1) - x.max(axis=1), rtol=1e-5, atol=1e-5)


def test_the_model_expects_it() -> None:
    assert JAMMED == TOGETHER


def test_short_rows_from_memory_stay_alone() -> None:
    assert f"in0_2 >= {LONG} || in0_0 * in0_1 * in0_2 < {FAR} ? in0_1 / 4 * 4 : 0" in source(MIDDLE)


def test_the_weights_do_not_decide() -> None:
    """They are few beside the rows."""
    assert f"in1_1 >= {LONG} || in0_0 * in1_1 < {FAR} ? least(256, in0_0 - k_chunk) / 4 * 4 : 0" in source(WEIGHTED)


@pytest.mark.parametrize(
    "component",
    [
        i("^ikj~ikj") >> i("+ikj~ij||ikj0"),
        i("j/i~ij") >> i("+ij~j||ij0"),
        i("+jk~j||jk"),
        i("+kj~j|k:8|kk'j"),
        i("+jk~j||kj"),
    ],
    ids=["functions take longer", "divisors", "no row", "few rows of a tile", "neighbours are far"],
)
def test_what_is_left_alone(component: Component) -> None:
    assert "_jam" not in source(component)


@pytest.mark.parametrize(("reads", "together"), [("in1", True), ("out0", False)])
def test_sums_that_read_others_in_turns_do_not_go_together(reads: str, together: bool) -> None:
    most = loop("j", N, Accumulate(at("out0", "j"), "max", at("in0", "k", "j")))
    total = loop("j", N, Accumulate(at("out1", "j"), "add", apply("mul", at("in0", "k", "j"), at(reads, "j"))))
    (bound,) = bind(Kernel("k", (loop("k", K, most, total, reduces=True),)))
    assert isinstance(bound, Jam) == together
