from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq.extract import search
from ilang_eq.extract.bound import least_seconds
from ilang_eq.extract.domains import Breadth
from ilang_eq.extract.machine import load
from ilang_eq.extract.rows import Processor
from ilang_eq.extract.search import propose
from ilang_eq.extract.structure import Structure
from tests.extract import spaces
from tests.extract.test_assemble import plain
from tests.extract.test_search import models

ZEN = load("x86_64_zen")


def least(sizes: dict[int, int], threads: int = 1, mirrored: bool = False) -> float:
    """Of a product, whose factors are multiplied where they are summed."""
    space = spaces.matmul()
    schedule = plain(space, (3, 2))
    schedule = replace(schedule, states={3: schedule.states[3]})
    return least_seconds(Structure(space), schedule, sizes, Processor(ZEN, threads), mirrored)


def test_a_product_takes_its_multiply_adds() -> None:
    sizes = {0: 1000, 1: 1000, 2: 1000}
    assert least(sizes) == pytest.approx(1000**3 / ZEN.vector.fma * 1e-9)
    assert least(sizes, threads=2) == pytest.approx(1000**3 / ZEN.vector.fma * 0.5e-9)


def test_half_of_a_symmetric_product_is_copied() -> None:
    sizes = {0: 1000, 1: 1000, 2: 1000}
    assert least(sizes, mirrored=True) == pytest.approx(least(sizes) / 2)


def test_a_thin_product_takes_what_it_moves() -> None:
    sizes = dict.fromkeys(range(3), 1)
    long = {**sizes, 0: 1 << 24}
    memory = ZEN.levels[-1]
    moved = sum(4 * (1 << 24 if 0 in axes else 1) for axes in ((0, 1), (1, 2), (0, 2)))
    found = [least({axis: long[(axis + shift) % 3] for axis in range(3)}) for shift in range(3)]
    assert max(found) == pytest.approx(moved / (memory.bandwidth * memory.abreast) * 1e-9, rel=0.01)


def test_what_is_near_the_least_is_not_searched_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Breadth] = []
    build = search.build

    def counting(structure: Structure, processor: Processor, estimate: search.Estimate, breadth: Breadth) -> object:
        tried.append(breadth)
        return build(structure, processor, estimate, breadth)

    monkeypatch.setattr(search, "build", counting)
    square = {(0, 0): 512, (0, 1): 512, (1, 1): 512}
    for worthwhile, thorough in ((1e9, False), (0.0, True)):
        tried.clear()
        monkeypatch.setattr(search, "WORTHWHILE", worthwhile)
        propose(spaces.matmul(), square, models(1), 4)
        assert any(breadth.thorough for breadth in tried) is thorough
