"""The model expects of large outputs what their kernels do: some go past the caches, beside what computes the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq.extract.full_model import Costed, program_cost
from ilang_eq.extract.machine import load
from ilang_eq.extract.versions import Version, versions
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from tests.extract.costs import cost

MACHINE = load("x86_64_zen4")
SOFTMAX = (I & i(">ij~i|j:64|")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> (I & i("+ij~i||ij0")) >> i("ij/i~ij||i10j")
CENTRED = (I & i("+ij~i") >> i("i/8~i||i0")) >> i("ij-i~ij||i1j")
TILED = (I & i("+ij~i|i:32|") >> i("i/8~i|i:32|i0i'")) >> i("ij-i~ij|i:32|i1i'j")
LARGE, SMALL = (4096, 4096), (512, 4096)


def version(component: Component, shape: tuple[int, int]) -> Version:
    (found,) = versions(lower(wire(component)), dict(zip([(0, 0), (0, 1)], shape, strict=True)), MACHINE)
    return found


def memory(component: Component, shape: tuple[int, int]) -> float:
    return sum(s for name, s in cost(component, shape, machine=MACHINE).terms if name.endswith(": memory"))


@pytest.mark.parametrize("component", [SOFTMAX, CENTRED])
def test_large_outputs_are_written_late(component: Component) -> None:
    large, small = version(component, LARGE), version(component, SMALL)
    assert (large.late, large.past) == (True, {"out0"})
    assert (small.late, small.past) == (False, frozenset())


def test_what_a_late_row_is_computed_from_is_there_twice() -> None:
    local = {b.name: b.dims for b in version(SOFTMAX, LARGE).program.buffers if b.role == "local" and b.dims}
    assert [dims[0] for dims in local.values()] == [2]
    assert not any(b.role == "local" and b.dims for b in version(SOFTMAX, SMALL).program.buffers), "it is in place"


def test_rows_too_short_or_too_long_are_not() -> None:
    assert not version(SOFTMAX, (1 << 14, 1024)).late
    assert version(CENTRED, (1 << 14, 1024)).late, "none are kept"
    assert not version(CENTRED, (1 << 17, 128)).late
    assert not version(CENTRED, (64, 1 << 18)).late
    assert not version(TILED, LARGE).late, "several rows at a time"


def test_what_goes_past_the_caches_is_not_fetched_first() -> None:
    """As in a copy, which streams; the same rows in tiles take half as much again."""
    copied = memory(i("ij*2~ij"), LARGE)
    assert memory(SOFTMAX, LARGE) == pytest.approx(copied, rel=0.01)
    assert memory(CENTRED, LARGE) == pytest.approx(copied, rel=0.01)
    assert memory(TILED, LARGE) == pytest.approx(1.5 * copied, rel=0.01)


@pytest.mark.parametrize(("text", "rows"), [("ij*2~ij", 1537), ("ij*ij~ij", 1025)])
def test_what_goes_past_them_depends_on_all_that_is_gone_through(text: str, rows: int) -> None:
    """48 MiB of it: one array that is read, or two."""
    component = i(text)
    inputs = text.count("ij") - 1

    def past(rows: int) -> frozenset[str]:
        extents = {(n, d): extent for n in range(inputs) for d, extent in enumerate((rows, 4096))}
        (found,) = versions(lower(wire(component)), extents, MACHINE)
        return found.past

    assert past(rows) == {"out0"}
    assert not past(rows - 2)


def test_what_was_costed_before_is_not_taken_for_another_version() -> None:
    """The same kernel streams its output where nothing else reads it."""
    read_again, computed_again = (i("ij*2~ij") >> (I & i(order)) for order in ("+ij~i", "+ij~i||ij0"))
    extents = {(0, 0): 4096, (0, 1): 4096}
    programs = [lower(wire(component)) for component in (read_again, computed_again)]
    alone = [program_cost(program, extents, MACHINE, 1).seconds for program in programs]
    for order in (programs, programs[::-1]):
        known = Costed()
        found = {id(program): program_cost(program, extents, MACHINE, 1, known).seconds for program in order}
        assert [found[id(program)] for program in programs] == alone


def test_nor_is_anything_where_the_machine_gains_nothing_by_it() -> None:
    machine = replace(MACHINE, past_caches=False)
    (found,) = versions(lower(wire(SOFTMAX)), {(0, 0): 4096, (0, 1): 4096}, machine)
    assert not found.late
    alike = [cost(each, LARGE, machine=machine) for each in (CENTRED, TILED)]
    first, second = ([s for name, s in each.terms if name.endswith(": memory")] for each in alike)
    assert sum(first) == pytest.approx(sum(second), rel=0.01)


@pytest.mark.parametrize(
    ("order", "terms", "columns", "past"),
    [
        ("jii'kk'i''j'", 512, 2048, True),
        ("jii'kk'i''j'", 1025, 2048, False),
        ("jii'kk'i''j'", 512, 2047, False),
        ("jiki'k'i''j'", 512, 2048, False),
    ],
    ids=["at once", "in blocks of terms", "no whole lines", "come back to"],
)
def test_which_sums_go_past_the_caches(order: str, terms: int, columns: int, past: bool) -> None:
    """As the code does, which starts with nothing in the first block of terms alone where it comes back to sums."""
    tiles = f"|i:4:6,j:32,k:64|{order}"
    program = lower(wire(i(f"ik*kj~kij{tiles}") >> i(f"+kij~ij{tiles}0")))
    extents = {(0, 0): 2052, (0, 1): terms, (1, 0): terms, (1, 1): columns}
    (found,) = versions(program, extents, MACHINE)
    assert found.past == (frozenset({"out0"}) if past else frozenset())
