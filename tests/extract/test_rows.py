from __future__ import annotations

import numpy as np

from ilang_eq.extract.machine import load
from ilang_eq.extract.rows import Knobs, Processor, Rows, SizedRows

ROW, COLUMN, INNER = range(3)
MACHINE = load("generic_x86_64")


def product(*tiles: float, threads: int = 1) -> SizedRows:
    """A product of 100 x 100 x 100 in two orders: nest i j with loops k i' j', and no nest with loops i j k."""
    rows = Rows((ROW, COLUMN, INNER), (((ROW, COLUMN), (INNER, ROW, COLUMN)), ((), (ROW, COLUMN, INNER))))
    knobs = Knobs(dict.fromkeys((ROW, COLUMN, INNER), 100), {axis: np.array(tiles) for axis in (ROW, COLUMN, INNER)})
    return rows.at(knobs, Processor(MACHINE, threads))


def test_loops_run_as_often_as_tiles_and_extents_say() -> None:
    sized = product(8.0, 100.0)
    assert sized.counts.shape == (2, 5, 2)
    assert sized.counts[0, :, 0].tolist() == [13, 13, 100, 8, 8]
    assert sized.counts[0, :, 1].tolist() == [1, 1, 100, 100, 100]
    assert sized.counts[1, :, 0].tolist() == [1, 1, 100, 100, 100], (
        "a missing nest is padded with loops of one iteration"
    )


def test_straight_code_is_the_constant_loops_inside() -> None:
    sized = product(8.0)
    assert sized.unit[0, 0] == 3, "i' and j' are unrolled in k"
    assert sized.unit[1, 0] == 4, "nothing is constant: only the innermost loop"
    assert product(64.0).unit[0, 0] == 4, "64 x 64 elements are too many vectors"


def test_what_loops_cover() -> None:
    covered = product(8.0).covered((ROW, INNER))[0, :, 0]
    assert covered.tolist() == [13 * 8 * 100, 800, 800, 8, 1, 1]


def test_what_does_not_move_is_not_fetched_again() -> None:
    sized = product(8.0)
    assert sized.fetches((ROW,), 0)[0, :, 0].tolist() == [1, 13, 13, 13, 13 * 13 * 100 * 8, 13 * 13 * 100 * 8]
    assert sized.fetches((ROW,), 2)[0, 2, 0] == 13 * 13, (
        "a buffer inside the second loop is new in each of its iterations"
    )


def test_what_fits_a_cache_moves_into_it_once() -> None:
    small = Rows((ROW, COLUMN), (((), (ROW, COLUMN)),)).at(Knobs({ROW: 10, COLUMN: 10}, {}), Processor(MACHINE, 1))
    assert small.caching((ROW, COLUMN), 0).sum() == 0
    large = Rows((ROW, COLUMN), (((), (ROW, COLUMN)),)).at(
        Knobs({ROW: 10_000, COLUMN: 10_000}, {}), Processor(MACHINE, 1)
    )
    once = [4e8 / level.bandwidth for level in MACHINE.levels[1:]]
    np.testing.assert_allclose(large.caching((ROW, COLUMN), 0)[:, 0, 0], once)


def test_tiles_save_traffic() -> None:
    knobs = Knobs(dict.fromkeys((ROW, COLUMN, INNER), 2000), {axis: np.array([32.0]) for axis in (ROW, COLUMN, INNER)})
    rows = Rows((ROW, COLUMN, INNER), (((ROW, COLUMN, INNER), (ROW, INNER, COLUMN)), ((), (ROW, INNER, COLUMN))))
    tiled, plain = rows.at(knobs, Processor(MACHINE, 1)).caching((INNER, COLUMN), 0).sum(axis=0)[:, 0]
    assert tiled < plain / 5


def test_short_rows_far_apart_compete_for_a_cache() -> None:
    rows = Rows((ROW, COLUMN, INNER), (((ROW, COLUMN, INNER), (ROW, INNER, COLUMN)),))
    knobs = Knobs(dict.fromkeys((ROW, COLUMN, INNER), 1024), {axis: np.array([32.0]) for axis in (ROW, COLUMN, INNER)})
    sized = rows.at(knobs, Processor(MACHINE, 1))
    assert sized.caching((INNER, COLUMN), 0, COLUMN).sum() > sized.caching((INNER, COLUMN), 0).sum()
    odd = rows.at(Knobs(dict.fromkeys((ROW, COLUMN, INNER), 1023), knobs.tiles), Processor(MACHINE, 1))
    np.testing.assert_allclose(odd.caching((INNER, COLUMN), 0, COLUMN), odd.caching((INNER, COLUMN), 0))


def test_a_row_of_several_short_axes_begins_a_page_anew() -> None:
    """1024×32×32 by the first axis, in tiles of one by sixteen: a page for every row of 4 KB, as for 1024×1024."""
    order = ((ROW, COLUMN, INNER), (COLUMN, INNER, ROW))
    tiles = {ROW: np.array([1024.0]), COLUMN: np.array([1.0]), INNER: np.array([16.0])}
    rows = Rows((ROW, COLUMN, INNER), (order,))
    sized = rows.at(Knobs({ROW: 1024, COLUMN: 32, INNER: 32}, tiles), Processor(MACHINE, 1))
    assert sized.walks((ROW, COLUMN, INNER), 0, (COLUMN, INNER)).sum() > 0
    assert sized.walks((ROW, COLUMN, INNER), 0, (INNER,)).sum() == 0


def test_the_busiest_thread_has_the_larger_share() -> None:
    shares = product(8.0, 50.0, threads=2).share
    np.testing.assert_allclose(shares[0], [7 / 13, 1 / 2])
    np.testing.assert_allclose(shares[1], [1 / 2, 1 / 2])


def test_a_scalar_has_no_loops() -> None:
    sized = Rows((), (((), ()),)).at(Knobs({}, {}), Processor(MACHINE, 2))
    assert sized.share.item() == 1
    assert sized.unit.item() == 0
