from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ilang_eq.extract.trips import Loop, copied, evaluate, row_by_row
from ilang_eq.lower.halves import BLOCK
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Constant, Diagonal, Extent, For, Index, Load, Statement

N = Extent(0, 0)
BODY = (Assign(Load("x", ()), Constant(0.0)),)


def nest(factors: tuple[int, ...]) -> For:
    """A loop per level of an axis split by ``factors``."""
    steps = [1]
    for factor in reversed(factors):
        steps.insert(0, steps[0] * factor)
    names = tuple("i" + "'" * n for n in range(len(steps)))
    body: tuple[Statement, ...] = BODY
    for n in reversed(range(len(steps))):
        body = (For(names[n], N, steps[n], steps[n - 1] if n else None, names[:n], body),)
    (loop,) = body
    assert isinstance(loop, For)
    return loop


def count(loop: For, extent: int, values: dict[str, int]) -> list[int]:
    """Total iterations of each level, by running the loops."""
    end = extent - sum(values[v] for v in loop.outer)
    bound = end if loop.limit is None else min(loop.limit, end)
    offsets = range(0, max(bound, 0), loop.step)
    inner = [count(s, extent, {**values, loop.variable: o}) for o in offsets for s in loop.body if isinstance(s, For)]
    return [len(offsets), *(sum(level) for level in itertools.zip_longest(*inner, fillvalue=0))]


@given(st.integers(1, 80), st.lists(st.integers(1, 7), max_size=2))
def test_average_trips_times_outer_trips_is_the_exact_count(extent: int, factors: list[int]) -> None:
    loop = nest(tuple(factors))
    expected = count(loop, extent, {})
    (node,) = evaluate([loop], {(0, 0): extent})
    total = 1.0
    for level in expected:
        assert isinstance(node, Loop)
        total *= node.trips
        assert total == pytest.approx(level)
        (node,) = node.body
    assert not isinstance(node, Loop)


def test_the_example() -> None:
    (tile,) = evaluate([nest((16,))], {(0, 0): 40})
    assert isinstance(tile, Loop)
    (element,) = tile.body
    assert isinstance(element, Loop)
    assert (tile.trips, tile.width) == (3, None)
    assert (element.trips, element.width) == (pytest.approx(40 / 3), 16)


def test_nothing_to_do_is_no_trips() -> None:
    (tile,) = evaluate([nest((4,))], {(0, 0): 0})
    assert isinstance(tile, Loop)
    assert tile.trips == 0


def test_what_runs_seldom_takes_no_time() -> None:
    loop = nest((16,))
    (first,) = (s for s in loop.body if isinstance(s, For))
    again = replace(loop, body=(replace(first, variable="j", first=("i",)), first))
    assert evaluate([again, replace(loop, without=(N,))], {(0, 0): 40}) == evaluate([loop], {(0, 0): 40})


def test_short_tiles_cover_the_lanes_that_there_is_code_for() -> None:
    """200 in tiles of 64: three whole ones, and one of 8 that takes 16 lanes."""
    (tiles,) = evaluate((nest((64,)),), {(0, 0): 200})
    assert isinstance(tiles, Loop)
    (elements,) = tiles.body
    assert isinstance(elements, Loop)
    assert (elements.trips, elements.covered) == (200 / 4, (3 * 64 + 16) / 4)


J, K = Extent(0, 1), Extent(1, 0)


def adding(target: tuple[str, ...], function: bool, limit: int | None = None) -> list[bool]:
    """Of a loop over k around one over j, which accumulates ``target`` and does nothing else."""
    read = Load("in0", (Index(("k",)), Index(("j",))))
    value = Apply("exp", (read,)) if function else read
    into = Accumulate(Load("out0", tuple(Index((v,)) for v in target)), "add", value)
    inner = For("j", J, 1, limit, (), (into,))
    (outer,) = evaluate((For("k", K, 1, None, (), (inner,)),), {(0, 1): 100, (1, 0): 50})
    assert isinstance(outer, Loop)
    return row_by_row(outer)


def test_rows_are_added_to_one_by_one_where_functions_compute_them() -> None:
    """Not numbers, rows that move with the loop around, or constant ones, which stay in registers."""
    assert adding(("j",), function=True) == [True, False]
    assert adding(("j",), function=False) == [False, False]
    assert adding((), function=True) == [False, False]
    assert adding(("k", "j"), function=True) == [False, False]
    assert not any(adding(("j",), function=True, limit=64))


def test_parts_of_rows_are_added_to_one_by_one_where_nothing_holds_them() -> None:
    """As values of attention, key by key; not what a loop around a tile comes back to, nor what comes once."""

    def adding(rows: int, around: int) -> list[bool]:
        into = Accumulate(Load("out0", (Index(("j", "j'")),)), "add", Load("in0", (Index(("k",)), Index(("j", "j'")))))
        tile = For("j'", J, 1, 16, ("j",), (into,))
        steps = For("k'", K, 1, 8, (), (tile,)) if rows else tile
        parts = For("j", J, 16, None, (), (steps,))
        (outer,) = evaluate((For("k", K, 1, None, (), (parts,)),), {(0, 1): 100, (1, 0): around})
        assert isinstance(outer, Loop)
        return row_by_row(outer)

    assert adding(rows=0, around=50) == [True, False]
    assert not any(adding(rows=8, around=50))
    assert adding(rows=0, around=1) == [False, False]


@pytest.mark.parametrize(("extent", "rows", "columns"), [(960, 6, 16), (1000, 16, 6), (4096, 96, 16), (200, 6, 32)])
def test_tiles_beyond_the_diagonal_do_not_run(extent: int, rows: int, columns: int) -> None:
    def nest(summed: tuple[Extent, ...]) -> float:
        stop = Diagonal(("j",), ("i",), rows, summed)
        inner = For("j", N, columns, None, (), BODY, diagonal=stop)
        (outer,) = evaluate([For("i", N, rows, None, (), (inner,))], {(0, 0): extent, (0, 1): 1000, (0, 2): 1})
        assert isinstance(outer, Loop)
        (tiles,) = outer.body
        assert isinstance(tiles, Loop)
        return outer.trips * tiles.trips

    ends = [-(-(i + rows) // BLOCK) * BLOCK for i in range(0, extent, rows)]
    run = sum(len(range(0, min(end, extent), columns)) for end in ends)
    assert nest((Extent(0, 1),)) == pytest.approx(run)
    assert nest((Extent(0, 2),)) == -(-extent // rows) * -(-extent // columns)


def test_finer_tiles_stop_closer_to_the_diagonal() -> None:
    """Blocks of 96 rows keep more than half; their tiles of 6 rows as much as if there were no blocks."""
    blocks = For("j1", N, 16, 64, ("j",), BODY, diagonal=Diagonal(("j", "j1"), ("i", "i1"), 6, (N,)))
    rows = For("i1", N, 6, 96, ("i",), (blocks,))
    columns = For("j", N, 64, None, (), (rows,), diagonal=Diagonal(("j",), ("i",), 96, (N,)))
    (node,) = evaluate([For("i", N, 96, None, (), (columns,))], {(0, 0): 1920})
    counts = []
    total = 1.0
    while isinstance(node, Loop):
        total *= node.trips
        counts.append(total)
        (node,) = node.body
    ends = {rows: [-(-(i + rows) // BLOCK) * BLOCK for i in range(0, 1920, rows)] for rows in (96, 6)}
    assert counts[1] == pytest.approx(sum(-(-end // 64) for end in ends[96]))
    assert counts[3] == pytest.approx(sum(-(-end // 16) for end in ends[6]))


def test_rows_that_lie_apart_are_copied() -> None:
    """Not columns that become rows, what is computed, or rows that follow each other."""

    def copies(read: tuple[str, str], target: tuple[str, str], value: str = "") -> list[str]:
        place = Load("in0", tuple(Index((v, v + "'")) for v in read))
        into = Load("copy", tuple(Index((v + "'",)) for v in target))
        along = For("j'", J, 1, 16, ("j",), (Assign(into, Apply(value, (place,)) if value else place),))
        steps = For("k'", K, 1, 8, ("k",), (along,))
        (outer,) = evaluate(
            (For("j", J, 16, None, (), (For("k", K, 8, None, (), (steps,)),)),), {(0, 1): 99, (1, 0): 50}
        )
        assert isinstance(outer, Loop)
        return copied(outer)

    assert copies(("k", "j"), ("k", "j")) == ["in0", ""]
    assert copies(("j", "k"), ("k", "j")) == ["", ""]
    assert copies(("k", "j"), ("k", "j"), "exp") == ["", ""]
