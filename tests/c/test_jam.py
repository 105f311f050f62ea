"""Sums of rows, several at a time."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq.c.binding import bind
from ilang_eq.c.emit import emit
from ilang_eq.c.jam import FEWEST, LINED_ROW, LONG_ROW, TOGETHER
from ilang_eq.c.nodes import Jam, Node
from ilang_eq.extract import leaves
from ilang_eq.lang.component import Component, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Accumulate, Assign, For, Kernel
from ilang_eq.lower.passes import FAR
from tests.c.programs import K, N, apply, at, loop

MIDDLE = i("+ikj~ij||ikj")
WEIGHTED = i("k*kj~kj") >> i("+kj~j||kj0")


def source(component: Component) -> str:
    return emit(lower(wire(component)))


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("k", [1, 3, 4, 5, 19])
@pytest.mark.parametrize("j", [1, 37, LONG_ROW - 1, LONG_ROW, LONG_ROW + 9])
def test_terms_come_in_order(k: int, j: int) -> None:
    """To the last bit, however long rows are."""
    x = np.random.default_rng(k).standard_normal((3, k, j), dtype=np.float32)
    want = np.zeros((3, j), np.float32)
    for row in range(k):
        want += x[:, row]
    np.testing.assert_array_equal(MIDDLE.compile(threads=1)(x), want)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(("k", "j"), [(FAR // 256, 256), (FAR // 256 + 3, 256), (FAR // LONG_ROW + 3, LONG_ROW)])
def test_on_both_sides_of_what_caches_hold(k: int, j: int) -> None:
    x = np.random.default_rng(k).integers(-9, 9, (1, k, j)).astype(np.float32)
    np.testing.assert_array_equal(MIDDLE.compile(threads=1)(x), x.sum(axis=1))


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("begins", range(0, 16, 3))
@pytest.mark.parametrize("j", [LINED_ROW, LINED_ROW + 16, LINED_ROW + 5])
def test_rows_may_begin_anywhere_in_a_line(begins: int, j: int) -> None:
    """To the last bit, whether or not they are whole lines."""
    memory = np.random.default_rng(begins).standard_normal(7 * j + 32, dtype=np.float32)
    first = (-memory.ctypes.data // memory.itemsize) % 16 + begins
    x = memory[first : first + 7 * j].reshape(1, 7, j)
    want = np.zeros((1, j), np.float32)
    for row in range(7):
        want += x[:, row]
    np.testing.assert_array_equal(MIDDLE.compile(threads=1)(x), want)


def test_long_rows_are_gone_through_by_whole_lines() -> None:
    """If they are whole lines themselves, so that all begin as far into one."""
    line = f"in0_2 % 16 == 0 && in0_2 >= {LINED_ROW} ? until_aligned(&in0[(i * in0_1 + k) * in0_2 + 0]) : 0"
    assert f"const int64_t j_line = {line};" in source(MIDDLE)
    multiples = source(i("k*j~kj") >> i("+kj~j||kj0"))
    assert "_sum = out" in multiples, "no rows of an array, but added together all the same"
    assert "_line" not in multiples


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
    assert (leaves.JAMMED, leaves.FEWEST) == (TOGETHER, FEWEST)


def test_short_rows_from_memory_stay_alone() -> None:
    assert f"in0_2 >= {LONG_ROW} || in0_0 * in0_1 * in0_2 < {FAR} ? in0_1 / 4 * 4 : 0" in source(MIDDLE)


def test_the_weights_do_not_decide() -> None:
    """They are few beside the rows."""
    assert f"in1_1 >= {LONG_ROW} || in0_0 * in1_1 < {FAR} ? least(256, in0_0 - k_chunk) / 4 * 4 : 0" in source(WEIGHTED)


def jams(component: Component) -> bool:
    """Whether any rows are added together; wherever they are, the sum has a name of its own."""
    return "_sum = out" in source(component)


def test_rows_that_caches_hold_for_certain_go_together_in_any_case() -> None:
    assert jams(i("k*j~kj") >> i("+kj~j||kj0"))
    assert "_jam" not in source(i("k*j~kj") >> i("+kj~j||kj0"))


@pytest.mark.parametrize(
    "component",
    [
        i("kj$kj~kj||kj") >> i("+kj~j||kj0"),
        i("^kj~kj||kj") >> i("+kj~j||kj0"),
        i("j/k~kj") >> i("+kj~j||kj0"),
        i("+jk~j||jk"),
        i("+kj~j|k:8|kk'j"),
        i("+jk~j||kj"),
    ],
    ids=["log", "exp", "divisor", "no row", "few rows of a tile", "neighbours are far"],
)
def test_what_is_left_alone(component: Component) -> None:
    assert not jams(component)


def bound(*rows: For, **how: int) -> Node:
    (node,) = bind(Kernel("k", (loop("k", K, *rows, reduces=True, **how),)))
    return node


def sum_of(target: str, op: str = "add", source: str = "in0") -> For:
    return loop("j", N, Accumulate(at(target, "j"), op, at(source, "k", "j")))


def test_nothing_is_lost_of_what_else_a_loop_does() -> None:
    """A row that is set each time, a sum along rows, or a sum that moves with the loop."""
    others = (
        loop("j", N, Assign(at("out1", "k", "j"), at("in0", "k", "j"))),
        loop("j", N, Accumulate(at("out1", "k"), "add", at("in0", "k", "j"))),
        loop("j", N, Accumulate(at("out1", "k", "j"), "add", at("in0", "k", "j"))),
    )
    assert isinstance(bound(sum_of("out0")), Jam)
    assert not any(isinstance(bound(sum_of("out0"), other), Jam) for other in others)


def test_two_sums_into_one_row_take_turns() -> None:
    assert isinstance(bound(sum_of("out0"), sum_of("out1", "max")), Jam)
    assert not isinstance(bound(sum_of("out0"), sum_of("out0", "max")), Jam)


@pytest.mark.parametrize(("limit", "together"), [(FEWEST - 1, False), (FEWEST, True), (2 * FEWEST, True)])
def test_a_few_rows_are_for_registers(limit: int, together: bool) -> None:
    assert isinstance(bound(sum_of("out0"), limit=limit), Jam) == together


def test_rows_that_are_asked_for_come_one_by_one() -> None:
    """Exponentials leave memory time for the next rows, which a pass over each of these asks for."""
    text = source(i("^ij~ij|i:16|ii'j") >> i("+ij~j|i:16|i0i'j"))
    assert "fetch_row(in0" in text
    assert "_jam" not in text


@pytest.mark.parametrize(("reads", "together"), [("in1", True), ("out0", False)])
def test_sums_that_read_others_in_turns_do_not_go_together(reads: str, together: bool) -> None:
    most = loop("j", N, Accumulate(at("out0", "j"), "max", at("in0", "k", "j")))
    total = loop("j", N, Accumulate(at("out1", "j"), "add", apply("mul", at("in0", "k", "j"), at(reads, "j"))))
    assert isinstance(bound(most, total), Jam) == together
