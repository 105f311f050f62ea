"""All in rows, as one candidate more."""

from __future__ import annotations

import numpy as np
import pytest

from ilang_eq import optimize
from ilang_eq.extract.by_rows import by_rows
from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.full_model import Cost, program_cost
from ilang_eq.extract.machine import load
from ilang_eq.extract.refine import Judge
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire

MACHINE = load("x86_64_zen")
LESS_MEAN = (I & i("+ij~i") >> i("i/4096~i")) >> i("ij-i~ij")


def found(component: Component, *shapes: tuple[int, ...]) -> str:
    extents = {(n, d): size for n, shape in enumerate(shapes) for d, size in enumerate(shape)}
    judge = Judge(lambda program, at, most=float("inf"): program_cost(program, at, MACHINE, 1, None, most), extents)
    graph = wire(component)
    return str(unwire(by_rows(Candidate(graph, judge.seconds(graph), {}), judge).graph))


def anyway(component: Component, *shapes: tuple[int, ...]) -> str:
    """The same, by a model that likes nothing better than rows."""
    extents = {(n, d): size for n, shape in enumerate(shapes) for d, size in enumerate(shape)}
    judge = Judge(lambda program, at, most=float("inf"): Cost(1.0, ()), extents)
    return str(unwire(by_rows(Candidate(wire(component), 2.0, {}), judge).graph))


@pytest.mark.parametrize("tiles", [("", "", ""), ("|i:4,j:128|iji'j'", "|i:4|", "|i:4,j:128|iji'j'")])
def test_what_a_row_needs_is_computed_where_it_begins(tiles: tuple[str, str, str]) -> None:
    sums, means, rest = tiles
    given = (I & i(f"+ij~i{sums}") >> i(f"i/4096~i{means}")) >> i(f"ij-i~ij{rest}")
    expected = (I & i("+ij~i") >> i("i/4096~i||i0")) >> i("ij-i~ij||i1j")
    assert found(given, (4096, 4096)) == str(expected)


def test_columns_are_summed_for_themselves() -> None:
    """Their sums are no part of a row; what is computed of each element is, wherever it is read."""
    given = (I & i("+ij~j|j:64|jij'")) >> i("ij-j~ij") >> i("ij*2~ij")
    expected = (I & i("+ij~j||ij")) >> i("ij-j~ij") >> i("ij*2~ij||ij0")
    assert anyway(given, (4096, 4096)) == str(expected)


def test_rows_lie_as_in_memory() -> None:
    """Whatever the axes are called, and whichever the result has first."""
    given = i("ba*2~ab") >> i("^ab~ab|a:64|aba'0")
    assert anyway(given, (512, 512)) == str(i("ba*2~ab||ba") >> i("^ab~ab||ba0"))


@pytest.mark.parametrize(
    ("component", "shapes"),
    [
        (i("ik*kj~ikj|i:4|iki'j") >> i("+ikj~ij|i:4|iki'j0"), ((64, 64), (64, 64))),
        (i("i-j~ij") >> i("^ij~ij||ij0") >> i("+ij~i||ij0"), ((512,), (512,))),
    ],
    ids=["a product", "differences of all with all"],
)
def test_what_goes_over_more_than_is_in_memory_needs_tiles(
    component: Component, shapes: tuple[tuple[int, ...], ...]
) -> None:
    assert anyway(component, *shapes) == str(component)


def test_it_has_to_gain() -> None:
    """Two passes over rows that no cache holds come from memory in either way."""
    assert found(LESS_MEAN, (16, 16777216)) == str(LESS_MEAN)


def test_the_search_looks_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several structures: if the mean of everything is one of columns, those of rows may be left to each row."""
    monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_zen")
    rows, columns = i("+ij~i") >> i("i/4096~i"), i("+ij~j") >> i("j/4096~j")
    whole = i("+ij~i") >> i("+i~.") >> i("./16777216~.")
    centred = (((I & rows) >> i("ij-i~ij") & columns) >> i("ij-j~ij") & whole) >> i("ij+.~ij")
    best = optimize(centred, [(4096, 4096)], threads=1, database=False)
    assert str((I & i("+ij~i") >> i("i/4096~i||i0")) >> i("ij-i~ij||ij1")) in str(best)
    x = np.random.default_rng(0).standard_normal((40, 4096), dtype=np.float32)
    np.testing.assert_allclose(best.component.interpret(x), centred.interpret(x), rtol=1e-9, atol=1e-9)
