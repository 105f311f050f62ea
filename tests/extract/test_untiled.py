"""Axes of large outputs without tiles, where that gains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq import optimize
from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.full_model import Cost, program_cost
from ilang_eq.extract.machine import load
from ilang_eq.extract.refine import Bound, Judge
from ilang_eq.extract.untiled import _without_outermost, untiled
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire

MACHINE = load("x86_64_zen4")
TILED = (I & i("+ij~i|i:32|") >> i("i/8~i|i:32|i0i'")) >> i("ij-i~ij|i:32|i1i'j")
WHOLE = (I & i("+ij~i") >> i("i/8~i||i0")) >> i("ij-i~ij||i1j")
BY_NORMS = (I & (I & I) >> i("ij*ij~ij") >> i("+ij~i") >> i("i^0.5~i")) >> i("ij/i~ij")
BOTH = (I & i("+ij~i|i:32|") >> i("i/8~i|i:32|i0i'")) >> i("ij-i~ij|i:32,j:128|i1ji'j'")


def found(component: Component, shape: tuple[int, int]) -> str:
    judge = Judge(
        lambda program, extents, most=float("inf"): program_cost(program, extents, MACHINE, 1, None, most),
        dict(zip([(0, 0), (0, 1)], shape, strict=True)),
    )
    graph = wire(component)
    return str(unwire(untiled(Candidate(graph, judge.seconds(graph), {}), judge).graph))


@pytest.mark.parametrize("component", [TILED, BOTH])
def test_one_row_after_the_other_where_rows_are_written_late(component: Component) -> None:
    """Also where the tiles of no single axis could go alone."""
    assert found(component, (4096, 4096)) == str(WHOLE)


def test_tiles_stay_where_outputs_are_small() -> None:
    assert found(TILED, (256, 4096)) == str(TILED)


def test_the_search_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_zen4")
    best = optimize(BY_NORMS, [(8192, 2048)], threads=1, database=False)
    assert not any(node.expr.splits for node in wire(best.component).nodes)


def test_tiles_stay_where_they_gain() -> None:
    product = i("ik*kj~kij|i:6,j:64|jiki'j'") >> i("+kij~ij|i:6,j:64|jiki'j'0")
    judge = Judge(
        lambda program, extents, most=float("inf"): program_cost(program, extents, MACHINE, 1, None, most),
        {(0, 0): 4096, (0, 1): 64, (1, 0): 64, (1, 1): 4096},
    )
    graph = wire(product)
    assert untiled(Candidate(graph, judge.seconds(graph), {}), judge).graph == graph


@pytest.mark.parametrize(("loss", "whole"), [(1.004, True), (1.006, False)])
def test_tiles_go_where_the_model_sees_no_loss(loss: float, whole: bool) -> None:
    tiled, untouched = wire(TILED), wire(WHOLE)
    judge = Judge(lambda program, extents, most=float("inf"): Cost(1.0, ()), {(0, 0): 4096, (0, 1): 4096})
    judge.known[untouched] = Bound(loss, exact=True)
    assert untiled(Candidate(tiled, 1.0, {}), judge).graph == (untouched if whole else tiled)


def test_a_tile_that_has_all_of_its_axis_is_none() -> None:
    """Of several levels the outermost is none; a tile of part of an axis stays."""

    def product(k: str) -> Component:
        return i(f"ik*kj~kij|i:6,j:4:16{k}") >> i(f"+kij~ij|i:6,j:4:16{k}0")

    block = product(",k:256|jkij'k'i'j''")
    judge = Judge(
        lambda program, extents, most=float("inf"): program_cost(program, extents, MACHINE, 1, None, most),
        {(0, 0): 96, (0, 1): 256, (1, 0): 256, (1, 1): 256},
    )
    graph = wire(block)
    best = untiled(Candidate(graph, judge.seconds(graph), {}), judge)
    assert str(unwire(best.graph)) == str(product("|jij'ki'j''"))
    (levels,) = wire(i("^ij~ij|i:4:8,j:16|iji'i''j'")).nodes
    assert str(_without_outermost(levels.expr, {"i", "j"})) == "^ij~ij|i:8|ii'j"
    partly = replace(judge, extents={**judge.extents, (0, 1): 512, (1, 0): 512}, known={})
    assert untiled(Candidate(graph, partly.seconds(graph), {}), partly).graph == graph
