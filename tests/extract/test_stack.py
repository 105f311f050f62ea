from __future__ import annotations

from ilang_eq.extract.machine import load
from ilang_eq.extract.stack import Stack
from ilang_eq.extract.trips import Loop, evaluate
from ilang_eq.lang.component import Component, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

MACHINE = load("x86_64_avx512")
EXTENTS = {(0, 0): 64, (0, 1): 8, (1, 0): 8, (1, 1): 128}


def _only_loops(loop: Loop) -> list[Loop]:
    """The last loop in each body, from the outside in."""
    inner = [node for node in loop.body if isinstance(node, Loop)]
    return [loop, *_only_loops(inner[-1])] if inner else [loop]


def _accumulated(component: Component) -> float:
    """How often the maxima of the last loops of ``component`` come into registers, 4 at a time."""
    (kernel,) = lower(wire(component)).kernels
    (outermost,) = (node for node in evaluate(kernel.body, EXTENTS) if isinstance(node, Loop))
    stack = Stack()
    *outer, row, column = _only_loops(outermost)
    for loop in outer:
        stack = stack.enter(loop).before(loop.body)
    unit = stack.enter(row, column)
    return unit.accumulated(unit.bits[row.variable])


def test_what_accumulates_alone_stays_in_registers() -> None:
    assert _accumulated(i(">ij~i|i:4,j:16|iji'j'")) == 64


def test_what_accumulates_beside_other_work_comes_and_goes() -> None:
    """Each of the 8 blocks of columns has sums of its own between two uses of the maxima."""
    tile = "|i:4,j:16|ijki'j'"
    sums = i("ik*kj~ikj" + tile) >> i("+ikj~ij" + tile + "0")
    assert _accumulated(sums >> i(">ij~i|i:4,j:16|ij0i'j'")) == 64 * 8
