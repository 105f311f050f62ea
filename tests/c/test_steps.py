"""Several steps of a reduction at a time, where its sums lie in the nearest cache."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from ilang_eq import Component, I, i
from ilang_eq.c.emit import emit
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.widths import BLOCK, MOST_IN_ROW, MOST_SUMS, STEPS
from tests.c.guarded import run_guarded
from tests.golden import Golden

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

TOGETHER = rf"for \(int64_t k_step = 0; k_step < {STEPS}; k_step\+\+\)"
ROWS, LANES = 24, 48


def product(tile: str = f"i:{ROWS},j:{LANES}", loops: str = "ijki'j'") -> Component:
    """A product in register tiles."""
    return i(f"ik*kj~kij|{tile}|{loops}") >> i(f"+kij~ij|{tile}|{loops}0")


def packed(steps: int) -> Component:
    """The same in blocks, with the second factor in panels, of which each step asks for what comes soon."""
    tile = f"i:{ROWS},j:{LANES},k:{steps}"
    panels = I | i(f"+kj~kj|j:{LANES},k:{steps}|jkk'j'")
    return panels >> i(f"ik*kj~kij|{tile}|jk1ik'i'j'") >> i(f"+kij~ij|{tile}|jkik'i'j'0")


def distances(tile: str) -> Component:
    """The largest |x_ik - y_jk| over k, whose second operand is gathered."""
    loops = f"|{tile}|ijki'j'"
    differences = i("ik-jk~kij" + loops) >> (I & I) >> i(f"kij*kij~kij{loops}01")
    return differences >> i(f">kij~ij{loops}0")


def sources(component: Component) -> list[str]:
    """What is taken together, in each reduction that does so."""
    return re.findall(TOGETHER, component.compile(threads=1).source)


@pytest.mark.parametrize("depth", [0, 1, STEPS - 1, STEPS, 2 * STEPS + 1, BLOCK + STEPS + 1])
@pytest.mark.parametrize(("rows", "columns"), [(ROWS, LANES), (2 * ROWS + 1, LANES + 17), (1, 3)])
def test_any_number_of_steps_will_do(depth: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((rows, depth), np.float32), rng.standard_normal((depth, columns), np.float32)
    for component in (product(), packed(2 * STEPS), packed(3 * STEPS + 2)):
        out = run_guarded(component.compile(threads=1), (rows, columns), x, y)
        np.testing.assert_allclose(out, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tile", ["i:24,j:48", "i:28,j:24", "i:12,j:50", "i:48,j:16"])
@pytest.mark.parametrize("shape", [(50, 2 * STEPS + 3, 101), (3, 5, 49)])
def test_what_is_loaded_once_is_loaded_for_each_step(tile: str, shape: tuple[int, int, int]) -> None:
    rows, depth, columns = shape
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((rows, depth), np.float32), rng.standard_normal((columns, depth), np.float32)
    out = run_guarded(distances(tile).compile(threads=1), (rows, columns), x, y)
    np.testing.assert_allclose(out, ((x[:, None] - y[None]) ** 2).max(axis=2), rtol=1e-6)


def test_sums_are_added_to_in_the_same_order() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((ROWS, 1000), np.float32), rng.standard_normal((1000, LANES), np.float32)
    together, alone = (product(tile).compile(threads=1)(x, y) for tile in ("i:24,j:48", "i:4,j:48"))
    np.testing.assert_array_equal(together, alone)


def test_tiles_that_fit_the_registers_take_one_step_at_a_time() -> None:
    rows = MOST_SUMS // (LANES // 16)
    assert not sources(product(f"i:{rows},j:{LANES}"))
    assert sources(product(f"i:{rows + 1},j:{LANES}"))


def test_each_step_asks_for_what_it_would_ask_for_alone() -> None:
    source = packed(8 * STEPS).compile(threads=1).source
    asked = rf"for \(int64_t k1_asking = k1; k1_asking < k1 \+ {STEPS}; k1_asking\+\+\) \{{\n *fetch_soon\(add0\w*, "
    assert re.search(asked + r"\(k1_asking \+ 8\)", source)


def test_a_constant_number_of_steps_leaves_none() -> None:
    rest = r"for \(int64_t k1 = \d+ / \d+ \* \d+;"
    whole, odd = (packed(steps).compile(threads=1).source for steps in (4 * STEPS, 4 * STEPS + 2))
    assert not re.search(rest, whole)
    assert re.search(r"for \(int64_t k1 = \S* ?/ 4 \* 4;|for \(int64_t k1 = least\([^;]*/ 4 \* 4;", odd)


def test_functions_take_one_step_at_a_time() -> None:
    tile = "|i:24,j:48|ijki'j'"
    weights = i("ik*kj~kij" + tile) >> i(f"^kij~kij{tile}0") >> i(f"+kij~ij{tile}0")
    assert not sources(weights)


def each(rows: int, inner: int) -> Component:
    """Products of x_ilk and y_lkj, one for each k, in tiles of ``inner`` of them."""
    tile = f"|i:{rows},j:16,k:{inner}|ikjli'k'j'"
    return i("ilk*lkj~likj" + tile) >> i(f"+likj~ikj{tile}0")


@pytest.mark.parametrize(("inner", "stays"), [(MOST_IN_ROW, False), (MOST_IN_ROW + 1, True)])
def test_short_loops_inside_of_rows_are_unrolled(inner: int, stays: bool) -> None:
    component = each(MOST_SUMS, inner)
    source = component.compile(threads=1).source
    together = TOGETHER.replace("k_step", "l_step")
    inside = rf" \{{\n *UNROLL\n *for [^\n]*\n *UNROLL\n *{together}"
    loops = rf"(UNROLL\n *)?for \(int64_t k1 = 0; k1 < {inner}; k1\+\+\)" + inside
    found = re.findall(loops, source)
    assert found
    assert all(not unrolled for unrolled in found) == stays
    rng = np.random.default_rng(0)
    x = rng.standard_normal((MOST_SUMS + 1, 7, inner), np.float32)
    y = rng.standard_normal((7, inner, 17), np.float32)
    out = run_guarded(component.compile(threads=1), (MOST_SUMS + 1, inner, 17), x, y)
    np.testing.assert_allclose(out, np.einsum("ilk,lkj->ikj", x, y), rtol=1e-4, atol=1e-4)


def test_golden_source(golden: Golden) -> None:
    golden.check("steps.c", emit(lower(wire(packed(2 * STEPS + 2)))))
