"""What components cost by the full model, for tests."""

from __future__ import annotations

from ilang_eq.extract.full_model import Cost, program_cost
from ilang_eq.extract.machine import Machine, load
from ilang_eq.lang.component import Component, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

MACHINE = load("x86_64_avx512")


def matmul(schedule: str) -> Component:
    """Inputs (i, k) and (k, j)."""
    return i("ik*kj~ikj" + schedule) >> i("+ikj~ij" + schedule + ("0" if schedule else ""))


def cost(component: Component, *shapes: tuple[int, ...], machine: Machine = MACHINE, threads: int = 1) -> Cost:
    extents = {(n, d): extent for n, shape in enumerate(shapes) for d, extent in enumerate(shape)}
    return program_cost(lower(wire(component)), extents, machine, threads)


def seconds(component: Component, *shapes: tuple[int, ...], machine: Machine = MACHINE, threads: int = 1) -> float:
    return cost(component, *shapes, machine=machine, threads=threads).seconds


def issue(component: Component, *shapes: tuple[int, ...], machine: Machine = MACHINE) -> float:
    """The instructions of the kernel that takes most of them, in seconds."""
    return max(time for name, time in cost(component, *shapes, machine=machine).terms if name.endswith("issue"))
