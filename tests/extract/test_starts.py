"""Where searches start from."""

from __future__ import annotations

from ilang_eq.extract.machine import load
from ilang_eq.extract.starts import TILES, options, starts
from ilang_eq.extract.structure import Structure
from tests.extract import spaces

ZEN = load("x86_64_zen")
MATMUL = Structure(spaces.matmul())
SIZES = {0: 1000, 1: 1000, 2: 1000}


def test_tiles_go_up_to_the_first_that_takes_all_of_an_axis() -> None:
    found = options(MATMUL, {0: 5, 1: 256, 2: 1000})
    assert found == {0: (1, 4, 6), 1: TILES, 2: TILES}


def begin(sizes: dict[int, int], seed: int = 0, thorough: bool = True) -> list[tuple[int, ...]]:
    return [tuple(tiles[axis] for axis in SIZES) for tiles in starts(MATMUL, sizes, ZEN, seed, thorough)]


def test_all_combinations_of_few_tiles() -> None:
    assert len(begin({0: 4, 1: 4, 2: 4}, thorough=False)) == 2**3


def test_register_tiles_are_along_each_pair_of_output_axes() -> None:
    found, usual = begin(SIZES), begin(SIZES, thorough=False)
    assert found[: len(usual)] == usual
    value = MATMUL.axes(next(iter(MATMUL.layouts)))
    (summed,) = set(SIZES) - set(value)
    for row, lane in (value, tuple(reversed(value))):
        for around in (1, 64, 256):
            tiles = {row: 6, lane: 16, summed: around}
            assert tuple(tiles[axis] for axis in SIZES) in found, "6 × 2 vectors of 8 floats, of 16 registers"


def test_the_same_seed_gives_the_same_starts() -> None:
    assert begin(SIZES, seed=1) == begin(SIZES, seed=1)
    assert begin(SIZES, seed=1) != begin(SIZES, seed=2)
