"""The tile sizes that a search starts from: structures are compared at these, so a structure that is good only at tiles
far from all of them is not found.

Three kinds: the same tile for every axis; a few at random; and for each pair of axes of a large reduction the register
tile of a micro-kernel along these, with all other axes in single steps, in blocks, or whole. The last are for products
with many axes, such as ``ik`` by ``hkj``, of which two are in registers and the others are loops.
What is not ``thorough`` does without.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product

import numpy as np

from ilang_eq.extract.candidate import Tiles
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.micro_kernel import MOST_ROWS, beside
from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import AxisId, Variant

TILES = (1, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)
"""Tile sizes considered for every axis, up to the first that is not below its extent."""

Options = Mapping[AxisId, tuple[int, ...]]
"""The tile sizes of every axis that some nest has, ascending."""

_FULL_PRODUCT = 128
"""Combinations of tile sizes that one elimination answers."""

_ALIKE = (8, 16, 32, 64, 256)
"""Tile sizes that are the same for all axes."""

_RANDOM = 2
"""Random choices of tile sizes."""

_VECTORS = 2
"""Vectors in a row of a register tile."""

_AROUND = (1, 64, 256)
"""Tile sizes of the axes that are not in a register tile."""

_LARGE = 8
"""Reductions with this part of the largest one's iterations, or more, have register tiles."""


def options(structure: Structure, sizes: Mapping[AxisId, int]) -> dict[AxisId, tuple[int, ...]]:
    """The tile sizes of every axis that some nest has: up to the first that takes all of it."""
    axes = sorted({axis for nests in structure.space.nests.values() for nest in nests for axis in nest})
    return {axis: TILES[: 1 + bisect_left(TILES, sizes[axis])] for axis in axes}


def starts(
    structure: Structure, sizes: Mapping[AxisId, int], machine: Machine, seed: int, thorough: bool
) -> list[Tiles]:
    """All combinations of tile sizes if they are few, else those that a search may start from."""
    found = options(structure, sizes)
    if math.prod(map(len, found.values())) <= _FULL_PRODUCT:
        return [dict(zip(found, tiles, strict=True)) for tiles in product(*found.values())]
    alike = [{axis: _fitting(tiles, tile) for axis, tiles in found.items()} for tile in _ALIKE]
    random = np.random.default_rng(seed)
    drawn = [{axis: int(random.choice(tiles)) for axis, tiles in found.items()} for _ in range(_RANDOM)]
    blocks = _register_tiles(structure, sizes, found, machine) if thorough else ()
    return [dict(tiles) for tiles in dict.fromkeys(tuple(t.items()) for t in (*alike, *drawn, *blocks))]


def _register_tiles(
    structure: Structure, sizes: Mapping[AxisId, int], found: Options, machine: Machine
) -> Iterator[Tiles]:
    """For each pair of axes of a large reduction, tiles along these that fit the registers."""
    width = _VECTORS * machine.lanes
    free = machine.vector_registers - beside(_VECTORS)
    rows = _fitting(TILES, min(MOST_ROWS, int(free) // _VECTORS))
    blocked = (_blocked(structure, root) for root in _large(structure, sizes))
    for row, lane in dict.fromkeys(pair for axes in blocked for pair in permutations(axes, 2)):
        for around in _AROUND:
            tile = {row: rows, lane: width}
            yield {axis: _fitting(tiles, tile.get(axis, around)) for axis, tiles in found.items()}


def _large(structure: Structure, sizes: Mapping[AxisId, int]) -> list[Variant]:
    """The variants that are large reductions."""
    roots = [f.root for c in structure.classes for f in structure.fusions(c) if structure.reduced(f.root)]
    work = {root: math.prod(sizes[axis] for axis in structure.loops(root)) for root in roots}
    return [root for root, steps in work.items() if steps * _LARGE >= max(work.values())]


def _blocked(structure: Structure, root: Variant) -> list[AxisId]:
    """The axes that register tiles of a reduction are along: of its value, or of all loops if that has only one.

    Axes that all arguments have are outermost loops instead.
    """
    value = [axis for axis in structure.axes(root.of) if axis not in structure.batch]
    return value if len(value) > 1 else [axis for axis in structure.loops(root) if axis not in structure.batch]


def _fitting(tiles: Sequence[int], most: int) -> int:
    """The largest of ``tiles`` up to ``most``."""
    return tiles[max(bisect_right(tiles, most) - 1, 0)]
