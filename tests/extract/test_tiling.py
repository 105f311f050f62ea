from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from ilang_eq.extract import tiling
from ilang_eq.extract.additive import build, estimator
from ilang_eq.extract.elimination import eliminate
from ilang_eq.extract.machine import load
from ilang_eq.extract.rows import Knobs, Processor
from ilang_eq.extract.structure import Structure
from ilang_eq.extract.tiling import Tiling
from ilang_eq.rewrites.space import Space
from tests.extract import spaces

TILES: tuple[int, ...] = (1, 8, 48)


def tiling_of(make: Callable[[], Space]) -> Tiling:
    space = make()
    sizes = {axis: 64 + 40 * axis for axis in range(len(space.extents))}
    knobs = Knobs(sizes, {axis: np.array([8.0]) for axis in sizes})
    structure, processor = Structure(space), Processor(load("generic_x86_64"), 2)
    model = build(structure, processor, estimator(structure, processor, knobs))
    return Tiling(model, sizes, dict.fromkeys(sizes, TILES))


@pytest.mark.parametrize("make", [spaces.matmul, spaces.softmax, spaces.attention])
def test_the_best_tiles_are_those_that_trying_everything_finds(make: Callable[[], Space]) -> None:
    found = tiling_of(make)
    model, sizes = found.model, found.sizes
    start = dict.fromkeys(sizes, 8)
    tables = model.tables(Knobs(sizes, {axis: np.array([8.0]) for axis in sizes}))
    choice = eliminate(model.sizes, tables, 1).choice(0)
    points = [dict(zip(sizes, tiles, strict=True)) for tiles in product(TILES, repeat=len(sizes))]
    knobs = Knobs(sizes, {axis: np.array([float(point[axis]) for point in points]) for axis in sizes})
    alone = model.only(model.needed(choice))
    everything = np.broadcast_to(sum(t.values.reshape(-1) for t in alone.tables(knobs)), len(points))
    tiles, cost = found.best(choice, start)
    assert cost == pytest.approx(everything.min(), rel=1e-12)
    assert cost == pytest.approx(everything[points.index(tiles)], rel=1e-12)


def test_more_axes_than_can_be_tried_at_once_are_tried_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tiling_of(spaces.attention)
    start = dict.fromkeys(found.sizes, 8)
    knobs = Knobs(found.sizes, {axis: np.array([8.0]) for axis in found.sizes})
    choice = eliminate(found.model.sizes, found.model.tables(knobs), 1).choice(0)
    _, least = found.best(choice, start)
    monkeypatch.setattr(tiling, "_GROUP_PRODUCT", len(TILES))
    tiles, cost = found.best(choice, start)
    assert least <= cost
    one = Knobs(found.sizes, {axis: np.array([float(tile)]) for axis, tile in tiles.items()})
    alone = found.model.only(found.model.needed(choice))
    assert cost == pytest.approx(sum(float(t.values.item()) for t in alone.tables(one)), rel=1e-12)
