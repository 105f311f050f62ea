"""Short rows that are reduced, a few side by side."""

from __future__ import annotations

import pytest

from ilang_eq import optimize
from ilang_eq.extract.candidate import Candidate
from ilang_eq.extract.full_model import Cost, program_cost
from ilang_eq.extract.machine import load
from ilang_eq.extract.refine import Judge
from ilang_eq.extract.short_rows import SHORT, WRITTEN, short_rows
from ilang_eq.extract.side_by_side import GAINS
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire

MACHINE = load("x86_64_zen5")
COLUMNS = i(">ij~i|i:8|iji'")


def judged(gain: float, *shapes: tuple[int, ...]) -> Judge:
    """By a model that has all that differs from what is given for quicker."""
    extents = {(n, d): size for n, shape in enumerate(shapes) for d, size in enumerate(shape)}
    return Judge(lambda program, at, most=float("inf"): Cost(min(1.0 / gain, most), ()), extents)


def found(component: Component, *shapes: tuple[int, ...]) -> str:
    return str(unwire(short_rows(Candidate(wire(component), 1.0, {}), judged(2.0, *shapes)).graph))


@pytest.mark.parametrize(("width", "tile"), [(16, 16), (24, 32), (64, 64), (100, 64)])
def test_four_rows_at_a_time_in_whole_vectors(width: int, tile: int) -> None:
    assert found(COLUMNS, (100_000, width)) == f"i(\">ij~i|i:4,j:{tile}|iji'j'\")"


def test_what_rows_share_and_what_is_made_of_each_are_there_as_well() -> None:
    """A vector, a mean, and what is summed of both; all inside the loop over tiles of rows."""
    given = (I & i("+ij~i") >> i("i/64~i")) >> i("ij-i~ij") >> i("ij*j~ij") >> i("+ij~i")
    mean = i("+ij~i|i:4,j:64|iji'j'") >> i("i/64~i|i:4|i0i'")
    scaled = (I & mean) >> i("ij-i~ij|i:4,j:64|i1ji'j'") >> i("ij*j~ij|i:4,j:64|iji'j'0")
    expected = scaled >> i("+ij~i|i:4,j:64|iji'j'0")
    assert found(given, (100_000, 64), (64,)) == str(expected)


@pytest.mark.parametrize(("length", "tile"), [(WRITTEN.start, 32), (64, 64)])
def test_rows_of_a_result_as_well(length: int, tile: int) -> None:
    given = (I & i("+ij~i")) >> i("ij/i~ij")
    expected = (I & i(f"+ij~i|i:4,j:{tile}|iji'j'")) >> i(f"ij/i~ij|i:4,j:{tile}|i1ji'j'")
    assert found(given, (100_000, length)) == str(expected)


def test_exponentials_that_are_kept_are_there_before_they_are_added_up() -> None:
    given = i("^ij~ij") >> (I & i("+ij~i||ij0")) >> i("ij/i~ij")
    tile = "|i:4,j:64|i{}ji'j'"
    expected = i("^ij~ij" + tile.format("")) >> (I & i("+ij~i" + tile.format("0"))) >> i("ij/i~ij" + tile.format("10"))
    assert found(given, (100_000, 64)) == str(expected)


def test_what_is_squared_is_read_once() -> None:
    given = (I & i("+ij~i")) >> i("ij-i~ij") >> (I & I) >> i("ij*ij~ij") >> i("+ij~i")
    assert ">> i(\"ij*ij~ij|i:4,j:64|iji'j'01\")" in found(given, (100_000, 64))


def test_rows_of_several_axes() -> None:
    assert found(i("+bij~bi|j:16|bijj'"), (300, 300, 48)) == str(i("+bij~bi|i:4,j:48|biji'j'"))


@pytest.mark.parametrize(
    ("component", "shape"),
    [
        pytest.param(COLUMNS, (100_000, SHORT.start - 1), id="less than a vector"),
        pytest.param(COLUMNS, (100_000, SHORT.stop), id="long"),
        pytest.param(i("+ij~j|j:64|jij'"), (100, 100_000), id="columns"),
        pytest.param(i("^ij~ij|i:4|"), (100_000, 64), id="no sum"),
        pytest.param((I & i("+ij~i")) >> i("ij/i~ij||i1j"), (100_000, WRITTEN.start - 1), id="short rows of a result"),
        pytest.param((I & i("+ij~i")) >> i("ij-i~ij") >> i("+ij~i"), (100_000, 24), id="passes over a part"),
        pytest.param(i("ij*2~ij") >> (I & i("+ij~i||ij0")) >> i("ij/i~ij"), (100_000, 64), id="what is kept"),
        pytest.param((I & i("^ij~ij") >> i("+ij~i")) >> i("ij/i~ij"), (100_000, 64), id="functions added up"),
        pytest.param((i("+ij~i") | i("+ij~i")) >> i("i+i~i"), (100_000, 64), id="rows of two kinds"),
        pytest.param(i("ik*jk~ijk|i:4|") >> i("+ijk~ij|i:4|iji'k0"), (1000, 64), id="products"),
    ],
)
def test_everything_else_stays(component: Component, shape: tuple[int, ...]) -> None:
    judge = judged(2.0, shape, shape)
    graph = wire(component)
    assert short_rows(Candidate(graph, 1.0, {}), judge).graph is graph


@pytest.mark.parametrize(("gain", "gains"), [(GAINS + 0.01, True), (GAINS - 0.01, False)])
def test_it_has_to_gain_more_than_the_model_may_err(gain: float, gains: bool) -> None:
    graph = wire(COLUMNS)
    assert (short_rows(Candidate(graph, 1.0, {}), judged(gain, (100_000, 64))).graph is not graph) == gains


def test_the_model_knows() -> None:
    extents = {(0, 0): 1 << 20, (0, 1): 16}
    judge = Judge(lambda program, at, most=float("inf"): program_cost(program, at, MACHINE, 1, None, most), extents)
    graph = wire(COLUMNS)
    assert short_rows(Candidate(graph, judge.seconds(graph), {}), judge).graph is not graph


def test_the_search_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_zen5")
    best = optimize(i(">ij~i"), [(1 << 20, 16)], threads=1, database=False)
    assert str(best) == str(i(">ij~i|i:4,j:16|iji'j'"))
