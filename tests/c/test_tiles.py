"""Register tiles of any size and shape: large ones, some that are no whole vectors, and what all their rows share."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable

import numpy as np
import pytest

from ilang_eq import Component, i
from ilang_eq.lower.widths import LARGEST_TILE, MOST_CALLS, MOST_SUMS
from tests.c.guarded import run_guarded

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

Form = Callable[[int, int], Component]

SHAPES = [(70, 9, 100), (33, 5, 47), (5, 3, 2), (1, 1, 1), (0, 4, 6)]
LARGE = 32, 64


def along(rows: int, lanes: int) -> Component:
    """The largest of x_ik + y_jk over k, in tiles along the rows of the output; y is gathered."""
    tile = f"i:{rows},j:{lanes}"
    return i(f"ik+jk~kij|{tile}|ijki'j'") >> i(f">kij~ij|{tile}|ijki'j'0")


def across(rows: int, lanes: int) -> Component:
    """The same in tiles of ``rows`` rows of lanes, which run across the rows of the output; x is gathered."""
    tile = f"i:{lanes},j:{rows}"
    return i(f"ik+jk~kji|{tile}|ijkj'i'") >> i(f">kji~ij|{tile}|ijkj'i'0")


def divided(rows: int, lanes: int) -> Component:
    """What calls a function for every element of a tile, and adds them up over its lanes."""
    tile = f"i:{rows},j:{lanes}"
    return i(f"^ij~ij|{tile}|iji'j'") >> i(f"+ij~i|{tile}|iji'j'0")


@pytest.mark.parametrize(("rows", "depth", "columns"), SHAPES)
@pytest.mark.parametrize("form", [along, across])
@pytest.mark.parametrize(("tile", "lanes"), [LARGE, (96, 16), (12, 14), (3, 6), (7, 24), (40, 24), (17, 34), (2, 5)])
def test_tiles_of_any_size(form: Form, tile: int, lanes: int, rows: int, depth: int, columns: int) -> None:
    kernel = form(tile, lanes).compile(threads=1)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((n, depth), dtype=np.float32) for n in (rows, columns))
    out = run_guarded(kernel, (rows, columns), x, y)
    np.testing.assert_allclose(out, (x[:, None] + y[None]).max(axis=2, initial=-np.inf), rtol=1e-6)


@pytest.mark.parametrize(("tile", "lanes"), [(14, 64), (40, 16), (4, 64)])
@pytest.mark.parametrize("shape", [(45, 200), (14, 64), (3, 17)])
def test_functions_in_tiles_of_any_size(tile: int, lanes: int, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    np.testing.assert_allclose(divided(tile, lanes).compile(threads=1)(x), np.exp(x).sum(axis=1), rtol=1e-5)


def _reductions(component: Component, rows: str) -> list[str]:
    """What stands right before the loops over the ``rows`` of tiles that compute, and not only load or store them."""
    source = component.compile(threads=1).source
    found = re.findall(rf"(\S+)\n *for \(int64_t {rows} = 0; [^\n]*\n *(?:UNROLL\n *for [^\n]*\n *)?// ", source)
    assert found
    return found


def test_rows_of_large_tiles_stay_loops() -> None:
    rows, lanes = LARGE
    assert MOST_SUMS * 16 < rows * lanes <= LARGEST_TILE
    assert f"float out0_tile[{rows}][{lanes}]" in along(*LARGE).compile(threads=1).source
    assert _reductions(along(*LARGE), "i1")[0] != "UNROLL"
    assert set(_reductions(along(7, 64), "i1")) == {"UNROLL"}
    # a tile beyond the nearest cache is none
    assert "out0_tile" not in along(LARGEST_TILE // 64 + 1, 64).compile(threads=1).source


def test_rows_that_call_functions_stay_loops_sooner() -> None:
    few, many = MOST_CALLS // 4, MOST_CALLS // 4 + 1
    unrolled, rolled = (divided(rows, 64).compile(threads=1).source for rows in (few, many))
    for source, rows, expected in ((unrolled, few, True), (rolled, many, False)):
        group = r"for \(int group = 0; group < 64 / LANES16;"
        head = rf"for \(int64_t i1 = 0; i1 < {rows}; i1\+\+\) \{{\n *UNROLL\n *{group}"
        assert re.search(head, source)
        assert bool(re.search(rf"UNROLL\n *{head}", source)) == expected


def test_what_all_rows_share_is_loaded_once() -> None:
    source = along(6, 64).compile(threads=1).source
    gathered = [line for line in source.splitlines() if "gather" in line and "in1[" in line]
    assert gathered
    assert all(re.match(r" *in1_once\d?\[j1 / LANES16\] = gather", line) for line in gathered)
    # one row shares nothing
    alone = i("ik+jk~kij|j:64|ijkj'") >> i(">kij~ij|j:64|ijkj'0")
    assert "in1_once" not in alone.compile(threads=1).source
