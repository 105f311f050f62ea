"""Workspace buffers that share memory are never alive together, and those that could share do."""

from __future__ import annotations

from itertools import combinations

from ilang_eq import Component, i
from ilang_eq.errors import ScheduleError
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Program
from ilang_eq.lower.lifetimes import slots
from ilang_eq.lower.walk import buffers_of
from tests.random_programs import random_case


def lowered(component: Component) -> Program:
    return lower(wire(component))


def touched(program: Program, name: str) -> list[int]:
    return [n for n, kernel in enumerate(program.kernels) if name in buffers_of(kernel.body)]


def check_slots(program: Program) -> int:
    """Every workspace buffer has one slot, in which no two live at once. Returns how many buffers are spared."""
    groups = slots(program)
    names = [buffer.name for group in groups for buffer in group]
    assert sorted(names) == sorted(b.name for b in program.buffers if b.role == "workspace")
    for group in groups:
        for one, other in combinations(group, 2):
            first, second = touched(program, one.name), touched(program, other.name)
            assert max(first) < min(second) or max(second) < min(first), f"{one.name} and {other.name}"
    return len(names) - len(groups)


def test_random_programs() -> None:
    spared = 0
    for seed in range(800):
        try:
            spared += check_slots(lower(random_case(seed).scheduled, alternatives=False))
        except ScheduleError:
            continue
    assert spared > 10


def test_a_chain_needs_two_slots() -> None:
    chain = i("-i~i") >> i("^i~i") >> i("0>i~i") >> i("$i~i") >> i("/i~i") >> i("i*i~i")
    assert [len(group) for group in slots(lowered(chain))] == [3, 2]


def test_what_is_read_late_keeps_its_memory() -> None:
    late = (i("-i~i") >> ((i("^i~i") >> i("$i~i") >> i("/i~i")) & i("+i~i"))) >> i("i*i~i")
    program = lowered(late)
    (kept,) = [group for group in slots(program) if group[0].name.startswith("sub0")]
    assert all(min(touched(program, b.name)) > max(touched(program, kept[0].name)) for b in kept[1:])


def test_a_slot_of_the_same_shape_is_preferred() -> None:
    rows = i("ij*ij~ij") >> i("+ij~i") >> i("^i~i")
    for second in (i("-i~i") >> i("^i~i"), i("-ij~ij") >> i("^ij~ij")):
        groups = slots(lowered(rows | second))
        assert sorted(len(group) for group in groups) == [1, 2]
        assert all(len({len(buffer.dims) for buffer in group}) == 1 for group in groups)
