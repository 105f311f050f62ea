"""How often phases begin to read something after others have read something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq.extract.machine import Machine, load
from ilang_eq.extract.regions import Region, regions
from ilang_eq.extract.trips import evaluate
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.addresses import SPACED_ROWS
from tests.extract.costs import cost

MACHINE = load("x86_64_zen4")
HEADS, ROWS, WIDTH = 32, 8192, 64
SHAPES = (HEADS, ROWS, WIDTH), (HEADS, ROWS, WIDTH)
SUMS = i("+ikl~ik|k:128,l:64|iklk'l'")
TOGETHER = (i("+ikl~ik|k:256|ikk'l") | I) >> i("ik*ikj~ikj|k:256|ik0k'j") >> i("+ikj~ij|k:256|ikk'j0")
APART = (i("+ikl~ik") | I) >> i("ik*ikj~ikj||i0kj") >> i("+ikj~ij||ikj0")


FOUR = (i("+ikl~ik|i:4,k:256|iki'k'l") | I) >> i("ik*ikj~ikj|i:4,k:256|ik0i'k'j") >> i("+ikj~ij|i:4,k:256|iki'k'j0")


def region(component: Component) -> Region:
    program = lower(wire(component))
    shapes = SHAPES[: len(program.inputs)]
    extents = {(n, d): extent for n, shape in enumerate(shapes) for d, extent in enumerate(shape)}
    (kernel,) = program.kernels
    (found,) = regions(evaluate(kernel.body, extents), program.buffers, extents, MACHINE)
    return found


def reading(found: Region) -> list[bool]:
    """The phases that read arguments."""
    return [any(name.startswith("in") for name in phase) for phase in _first_uses(found)]


def _first_uses(found: Region) -> list[set[str]]:
    phases: list[set[str]] = [set() for _ in range(found.count)]
    for buffer, uses in found.uses.items():
        phases[uses[0].phase].add(buffer)
    return phases


def begun(component: Component) -> list[float]:
    found = region(component)
    return [times for times in found.begun(reading(found)) if times]


def test_one_alone_goes_on_where_it_ended() -> None:
    assert begun(SUMS) == [1.0]


def test_two_take_turns_as_often_as_what_they_are_in_runs() -> None:
    assert begun(APART) == [HEADS, HEADS]
    assert begun(TOGETHER) == [HEADS * ROWS / 256] * 2


def test_each_row_of_several_begins() -> None:
    assert begun(FOUR) == begun(TOGETHER)


def _out_of_memory(component: Component, machine: Machine) -> float:
    terms = cost(component, *SHAPES, machine=machine).terms
    return sum(seconds for name, seconds in terms if name.endswith(": memory"))


def test_taking_turns_waits_for_memory() -> None:
    """A part of its latency each time."""
    apart, together = (_out_of_memory(each, MACHINE) for each in (APART, TOGETHER))
    more = 2 * (HEADS * ROWS / 256 - HEADS) * MACHINE.levels[-1].latency * 1e-9
    assert together - apart == pytest.approx(0.9 * more, rel=0.01)


def test_taking_turns_waits_for_nothing_where_prefetchers_go_by_the_instruction() -> None:
    machine = replace(MACHINE, by_instruction=True)
    apart, together = (_out_of_memory(each, machine) for each in (APART, TOGETHER))
    assert together == pytest.approx(apart, rel=0.01)


@pytest.mark.parametrize(("rows", "spaced"), [(SPACED_ROWS, True), (SPACED_ROWS - 1, False)])
def test_many_rows_of_a_threads_own_have_room_between_them(rows: int, spaced: bool) -> None:
    """Weights of 1024 keys: column by column their lines would drive each other out (``c/layout.py``)."""
    s = f"|i:{rows}|"
    weighted = i(f"^ik~ik{s}ii'k") >> i(f"ik*kj~ikj{s}i0jki'") >> i(f"+ikj~ij{s}ijki'0")
    shapes = (64, 1024), (1024, 64)
    program, extents = lower(wire(weighted)), {(n, d): each for n, s in enumerate(shapes) for d, each in enumerate(s)}
    (kernel,) = program.kernels
    (found,) = regions(evaluate(kernel.body, extents), program.buffers, extents, MACHINE)
    (local,) = (b.name for b in program.buffers if b.role == "local" and len(b.dims) == 2)
    whole = found.loops[0].whole[local]
    assert (whole.runs > 1.0) == spaced, "rows with nothing between them are one"
    assert whole.stride == 4 * (1024 + 16) or not spaced
