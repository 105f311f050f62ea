"""Rows that others are added to, in registers."""

from __future__ import annotations

import pytest

from ilang_eq import optimize
from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.full_model import Cost, program_cost
from ilang_eq.extract.held import LONGEST, held
from ilang_eq.extract.machine import load
from ilang_eq.extract.refine import Judge
from ilang_eq.lang.component import Component, i
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire

MACHINE = load("x86_64_zen4")
MIDDLE = i("+ikj~ij||ikj")


def found(component: Component, *shapes: tuple[int, ...]) -> str:
    extents = {(n, d): size for n, shape in enumerate(shapes) for d, size in enumerate(shape)}
    judge = Judge(lambda program, at, most=float("inf"): program_cost(program, at, MACHINE, 1, None, most), extents)
    graph = wire(component)
    return str(unwire(held(Candidate(graph, judge.seconds(graph), {}), judge).graph))


@pytest.mark.parametrize(("length", "tile"), [(LONGEST, LONGEST), (200, 208), (256, 256)])
def test_all_of_a_row_in_whole_vectors(length: int, tile: int) -> None:
    assert found(MIDDLE, (64, 512, length)) == str(i(f"+ikj~ij|j:{tile}|ijkj'"))


@pytest.mark.parametrize("length", [LONGEST + 1, 4096, 7])
def test_no_row_that_is_too_long_or_short(length: int) -> None:
    assert found(MIDDLE, (64, 512, length)) == str(MIDDLE)


def test_what_is_computed_for_each_row_comes_along() -> None:
    weighted = i("k*kj~kj") >> i("+kj~j||kj0")
    held_in_registers = i("k*kj~kj|j:512|jkj'") >> i("+kj~j|j:512|jkj'0")
    assert found(weighted, (65536,), (65536, 512)) == str(held_in_registers)


@pytest.mark.parametrize(
    "component",
    [i("+ikj~ij|j:64|ijkj'"), i("+ikj~ij||ijk"), i("^ikj~ikj")],
    ids=["tiles", "sums of neighbours", "no sum"],
)
def test_everything_else_stays(component: Component) -> None:
    assert found(component, (64, 512, 256)) == str(component)


def test_one_axis_after_the_other() -> None:
    """Of two sums with rows of their own, each is held, and rows of anything else stay as they are."""
    two = i("+ikj~ij||ikj") | i("+ikj~ij||ikj") | i("^ij~ij||ij")
    both = i("+ikj~ij|j:256|ijkj'") | i("+ikj~ij|j:512|ijkj'") | i("^ij~ij||ij")
    assert found(two, (64, 512, 256), (64, 512, 512), (64, 512)) == str(both)


def test_it_has_to_gain() -> None:
    graph = wire(MIDDLE)
    judge = Judge(lambda program, at, most=float("inf"): Cost(1.0, ()), {(0, 0): 64, (0, 1): 512, (0, 2): 256})
    assert held(Candidate(graph, 1.0, {}), judge).graph is graph


def test_the_search_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_zen4")
    best = optimize(i("+ikj~ij"), [(64, 512, 512)], threads=1, database=False)
    assert str(best) == str(i("+ikj~ij|j:512|ijkj'"))
