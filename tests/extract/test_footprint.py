from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ilang_eq.extract.footprint import FOLLOWED, LINE, WRITTEN, Cache, Region, Span, TranslationBuffer, regions
from ilang_eq.extract.machine import load
from ilang_eq.extract.trips import evaluate
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

LEVEL = load("x86_64_avx512").levels[0]
PASSES = (I & i(">ij~i||ij")) >> (i("ij-i~ij||i1j") & I) >> i("+ij~i||i0j")
"""Three passes over each row: its maximum, the differences from it, their sum."""


def nest(component: Component, *shape: int) -> Region:
    """The last outermost loop of a one-kernel component with one input."""
    program = lower(wire(component))
    extents = {(0, d): n for d, n in enumerate(shape)}
    (kernel,) = program.kernels
    return regions(evaluate(kernel.body, extents), program.buffers, extents)[-1]


@pytest.mark.parametrize("order", ["iji'j'", "jii'j'", "ii'jj'", "jj'ii'"])
@given(blocks=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_a_whole_nest_touches_everything_once(order: str, blocks: tuple[int, int]) -> None:
    rows, columns = blocks[0] * 4, blocks[1] * 16
    region = nest(i(f"^ij~ij|i:4,j:16|{order}"), rows, columns)
    moved = sum(span.traffic.bytes for span in region.whole.values())
    assert moved == pytest.approx(4 * rows * columns * (1 + WRITTEN))


def test_an_iteration_of_a_tile_loop_touches_a_tile() -> None:
    region = nest(i("^ij~ij|i:4,j:16|iji'j'"), 64, 128)
    (column,) = region.loops
    assert {(span.runs, span.run, span.stride) for span in column.iteration.values()} == {(4.0, 64.0, 512)}
    assert {(span.runs, span.run) for span in region.iteration.values()} == {(1.0, 4 * 512.0)}


def test_a_column_takes_a_line_for_every_element() -> None:
    region = nest(i("^ij~ij||ji"), 64, 128)
    (span, _) = region.iteration.values()
    assert (span.runs, span.run, span.bytes) == (64.0, 4.0, 64.0 * LINE)


@given(st.integers(2, 64), st.integers(1, 512), st.integers(1, 512))
def test_runs_occupy_more_than_they_hold_where_their_lines_compete(runs: int, run: int, stride: int) -> None:
    span = Span(float(runs), float(run), stride * LINE, False, float(runs * -(-run // LINE) * LINE))
    starts = range(0, LEVEL.way_bytes * stride * LINE, stride * LINE)
    lines = {(start + offset) % LEVEL.way_bytes // LINE for start in starts[:128] for offset in range(0, run, LINE)}
    assert span.occupies(LEVEL) == pytest.approx(span.bytes * (LEVEL.way_bytes / LINE) / len(lines))


def test_a_row_that_fits_is_fetched_once_for_all_passes() -> None:
    """Two passes read the row; its differences, which keep their place, are written by one and read by another."""
    rows, row, long_row = 8, int(LEVEL.bytes) // 4, int(LEVEL.bytes) * 4
    output = 4 * rows * WRITTEN
    once = nest(PASSES, rows, row // 4).fetched(Cache(LEVEL)).bytes
    assert once == pytest.approx(rows * row + WRITTEN * row + output)
    anew = nest(PASSES, rows, long_row // 4).fetched(Cache(LEVEL)).bytes
    assert anew == pytest.approx(rows * long_row * (2 + WRITTEN + 1), rel=1e-3)


def test_rows_on_pages_of_their_own_are_looked_up_again_where_there_are_too_many() -> None:
    rows, columns = 512, 4096
    region = nest(i("^ij~ij|j:16|jij'"), rows, columns)
    once, anew = (region.fetched(TranslationBuffer(entries)).bytes for entries in (4 * rows, rows // 4))
    assert once == 0, "all of it is one run"
    assert anew == pytest.approx(2 * rows * columns / 16)


def test_prefetchers_follow_short_strides() -> None:
    """Runs of 256 bytes out of rows of 512 come foreseen but for an eighth, those out of rows of 4096 half."""
    near, far = (Span(100, 256, stride, False, 25_600).traffic for stride in (FOLLOWED // 4, 2 * FOLLOWED))
    assert near.bytes == far.bytes == 25_600
    assert (near.apart, far.apart) == (3_200, 12_800)
