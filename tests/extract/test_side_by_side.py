"""Rows that are summed, several side by side."""

from __future__ import annotations

import pytest

from ilang_eq import optimize
from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.full_model import Cost, program_cost
from ilang_eq.extract.machine import load
from ilang_eq.extract.refine import Judge
from ilang_eq.extract.side_by_side import GAINS, LONG, side_by_side
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire

MACHINE = load("x86_64_zen4")
ROW_BY_ROW = i("ij*j~ij||ij") >> i("+ij~i||ij0")
ABREAST = i("ij*j~ij|i:8,j:16|iji'j'") >> i("+ij~i|i:8,j:16|iji'j'0")


def found(component: Component, *shapes: tuple[int, ...]) -> str:
    extents = {(n, d): size for n, shape in enumerate(shapes) for d, size in enumerate(shape)}
    judge = Judge(lambda program, at, most=float("inf"): program_cost(program, at, MACHINE, 1, None, most), extents)
    graph = wire(component)
    return str(unwire(side_by_side(Candidate(graph, judge.seconds(graph), {}), judge).graph))


@pytest.mark.parametrize("length", [LONG, 32768])
def test_long_rows_times_a_vector(length: int) -> None:
    assert found(ROW_BY_ROW, (4096, length), (length,)) == str(ABREAST)


@pytest.mark.parametrize("length", [1024, LONG - 1])
def test_short_rows_stay_alone(length: int) -> None:
    assert found(ROW_BY_ROW, (4096, length), (length,)) == str(ROW_BY_ROW)


def test_what_stands_between_the_loops_stays_there() -> None:
    """A sum that is read by another, of the same rows; the last one has no row of its own."""
    sums = (I & i("+ij~i||ij")) >> i("ij-i~ij||i1j") >> i("+ij~i||ij0")
    judge = Judge(lambda program, at, most=float("inf"): Cost(0.1, ()), {(0, 0): 64, (0, 1): 8192})
    tiled = side_by_side(Candidate(wire(sums), 1.0, {}), judge).graph
    first, second, third = (str(node.expr) for node in tiled.nodes)
    assert first == "+ij~i|i:8,j:16|iji'j'"
    assert second == "ij-i~ij|i:8,j:16|i1ji'j'"
    assert third == "+ij~i|i:8,j:16|iji'j'0"


@pytest.mark.parametrize(
    "component",
    [i("+ij~i|j:64|"), i("+ij~i|i:4|ii'j"), i("+ij~j||ij"), i("+ij~i||ji"), i("^ij~ij||ij"), i("+i~.")],
    ids=["tiles along", "tiles of rows", "rows added to a row", "columns", "no sum", "one row"],
)
def test_everything_else_stays(component: Component) -> None:
    extents = {(0, 0): 8192, (0, 1): 8192}
    judge = Judge(lambda program, at, most=float("inf"): Cost(0.1, ()), extents)
    graph = wire(component)
    assert side_by_side(Candidate(graph, 1.0, {}), judge).graph is graph


@pytest.mark.parametrize(("share", "gains"), [(1.0 / GAINS - 0.01, True), (1.0 / GAINS + 0.01, False)])
def test_it_has_to_gain_more_than_the_model_may_err(share: float, gains: bool) -> None:
    graph = wire(ROW_BY_ROW)
    extents = {(0, 0): 8192, (0, 1): 8192, (1, 0): 8192}
    judge = Judge(lambda program, at, most=float("inf"): Cost(min(share, most), ()), extents)
    assert (side_by_side(Candidate(graph, 1.0, {}), judge).graph is not graph) == gains


def test_the_search_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_zen4")
    best = optimize(i("ij*j~ij") >> i("+ij~i"), [(2048, 8192), (8192,)], threads=1, database=False)
    assert "+ij~i|i:8,j:32|iji'j'0" in str(best)
