"""Long reductions, compiled: errors that do not grow, results that do not depend on threads, shared rows."""

from __future__ import annotations

import re
import shutil
import threading

import numpy as np
import pytest

from ilang_eq.c.emit import emit
from ilang_eq.c.work import work_text
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Accumulate, Assign
from tests.c.programs import K, M, apply, at, loop
from tests.lower.test_online import flash_attention_2

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def normal(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


SUM, ROWS, COLUMNS, ALL = i("+i~."), i("+ij~i"), i("+ij~j|j:64|jij'"), i("+ij~.")


@pytest.mark.parametrize(
    ("component", "shape", "bound"),
    [
        (SUM, (10_000,), 3e-6),
        (SUM, (1_000_000,), 3e-6),
        (SUM, (10_000_000,), 3e-6),
        (ROWS, (20, 100_000), 3e-6),
        (ROWS, (2, 1_000_000), 3e-6),
        (ALL, (3, 1_000_000), 3e-6),
        (ALL, (100_000, 10), 3e-6),
        (COLUMNS, (100_000, 70), 2e-5),
    ],
    ids=lambda x: str(x),
)
def test_errors_of_equal_terms_do_not_grow(component: Component, shape: tuple[int, ...], bound: float) -> None:
    """Equal terms are the worst case: every addition to a large partial sum rounds the same way."""
    x = np.full(shape, 0.1, dtype=np.float32)
    got = component.compile(threads=2)(x)
    want = float(np.float32(0.1)) * x.size / got.size
    np.testing.assert_allclose(got, want, rtol=bound)


PANELS = (I | i("+kj~kj|j:64,k:256|jkk'j'")) >> (
    i("ik*kj~kij|i:6,j:64,k:256|jk1ik'i'j'") >> i("+kij~ij|i:6,j:64,k:256|jkik'i'j'0")
)
LONG = {
    "sum": (SUM, [(300_001,)]),
    "maximum": (i(">i~."), [(300_001,)]),
    "dot": (i("i*i~i") >> i("+i~.||i0"), [(200_000,), (200_000,)]),
    "everything": (ALL, [(70, 40_000)]),
    "columns": (i("+ij~j||ij"), [(5000, 37)]),
    "few rows": (ROWS, [(2, 150_000)]),
    "few panels": (PANELS, [(130, 700), (700, 90)]),
    "few panels and tiles": (PANELS, [(20, 5000), (5000, 90)]),
    "few queries": (flash_attention_2(), [(3, 16), (5000, 16), (5000, 24)]),
}


@pytest.mark.parametrize("name", LONG)
def test_threads_do_not_change_a_bit(name: str) -> None:
    component, shapes = LONG[name]
    arrays = normal(*shapes)
    one, *others = (component.compile(threads=threads)(*arrays) for threads in (1, 2, 5))
    for other in others:
        np.testing.assert_array_equal(one, other)
    scale = float(np.sqrt(shapes[-1][0]))
    np.testing.assert_allclose(one, component.interpret(*arrays), rtol=1e-4, atol=1e-5 * scale)


def test_neither_one_thread_nor_even_rows_share_tiles() -> None:
    """A thread that has at most 1/16 more than its share of the columns has panels of its own."""
    source = emit(lower(wire(PANELS)))
    fits = "ceil_div(in1_1, 64) < 8 && ceil_div(in0_0, 6) >= 8 && 4.0 * 256 * 64 * in0_0 >= 1000000.0"
    uneven = "threads > 1 && ceil_div(ceil_div(in1_1, 64), threads) * threads * 1024 > in1_1 * 17"
    assert f"if ({fits})\n        {uneven} ? kernel_add2_shared_tiles(" in source


@pytest.mark.parametrize("shape", [(1, 65_536), (7, 65_536), (8, 65_536), (3, 65_535), (0, 70_000), (5, 0)], ids=str)
def test_both_versions_of_a_row_operation(shape: tuple[int, int]) -> None:
    softmax = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
    (x,) = normal(shape)
    got = softmax.compile(threads=2)(x)
    np.testing.assert_allclose(got, softmax.interpret(x), rtol=2e-5, atol=1e-9)


def test_calls_from_many_threads_at_once() -> None:
    kernel = SUM.compile(threads=2)
    inputs = [normal((100_000 + n,))[0] for n in range(4)]
    want = [kernel(x) for x in inputs]
    wrong: list[int] = []

    def work(n: int) -> None:
        wrong.extend(n for _ in range(20) if kernel(inputs[n]) != want[n])

    workers = [threading.Thread(target=work, args=(n,)) for n in range(len(inputs))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


COMPARISONS = {"i>>j": np.greater, "i>=j": np.greater_equal, "i<<j": np.less, "i<=j": np.less_equal}
COMPARISONS |= {"i==j": np.equal, "i!=j": np.not_equal, "i&&j": np.logical_and, "i||j": np.logical_or}
COMPARISONS |= {"i^^j": np.logical_xor}


@pytest.mark.parametrize("text", COMPARISONS)
def test_truth_values_are_counted_in_vectors(text: str) -> None:
    count = i(text.replace("j", "i") + "~i") >> i("+i~.||i0")
    assert "reduction(" not in emit(lower(wire(count))), "in registers, not left to the compiler"
    x, y = (np.round(a * 2) for a in normal((1000,), (1000,)))
    x[::50] = np.nan
    assert count.compile()(x, y) == np.count_nonzero(COMPARISONS[text](x, y))


@pytest.mark.parametrize("shape", [(4, 4, 16), (7, 9, 37), (1, 3, 5), (13, 8, 130), (5, 5, 263)])
@pytest.mark.parametrize("width", [16, 96, 200])
def test_rows_of_a_tile_are_folded_together(width: int, shape: tuple[int, int, int]) -> None:
    """Lanes that are few enough for registers are added up once for all rows, whether the part of a row is whole."""
    sums = i(f"+jik~i|i:4,j:4,k:{width}|ijki'j'k'")
    rows, tile = (emit(lower(wire(sums))).index(text) for text in ("for (int64_t j1", "_tile["))
    assert (tile < rows) is (width < 200)
    (x,) = normal(shape)
    np.testing.assert_allclose(sums.compile()(x), x.sum((0, 2), dtype=np.float64), rtol=1e-4, atol=1e-4)


SHORT = {op: i(f"{op}ikl~i|i:2,l:8|ili'kl'") for op in ("+", "*", ">", "<")} | {
    "dots": i("ikl*jkl~ijkl|l:8|ijlkl'") >> i("+ijkl~ij|l:8|ijlkl'0")
}


@pytest.mark.parametrize("length", [1, 7, 8, 9, 20])
@pytest.mark.parametrize("name", SHORT)
def test_lanes_beyond_a_short_part_of_a_row_change_nothing(name: str, length: int) -> None:
    """The sums of all lanes are folded once for all k, in a part that may be short as in a whole one."""
    component = SHORT[name]
    arrays = normal(*[(5, 6, length)] * component.inputs)
    np.testing.assert_allclose(component.compile()(*arrays), component.interpret(*arrays), rtol=1e-4, atol=1e-6)
    tails = emit(lower(wire(component))).split("l1_end = ")[1:]
    assert tails
    assert all(re.search(r"for \(int64_t k = 0.*keep8\(.*across_", tail, re.S) for tail in tails)


def test_work_counts_what_every_iteration_does() -> None:
    body = Accumulate(at("out0", "i"), "add", apply("exp", at("in0", "i", "k")))
    row = loop("i", M, Assign(at("out0", "i"), apply("div", 1.0, at("in1"))), loop("k", K, body))
    assert work_text([row]) == "14.0 * in0_0 + 19.0 * in0_0 * in0_1"


def test_work_takes_the_parts_of_an_axis_together() -> None:
    inner = loop("i1", M, Assign(at("out0", "i+i1"), at("in0", "i+i1")), limit=16, outer=("i",))
    assert work_text([loop("i", M, inner, step=16)]) == "16.0 * in0_0"
    assert work_text([inner]) == "16.0 * 16"
