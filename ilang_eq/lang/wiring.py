"""Components to dataflow: who feeds whom, with the reference's rule for left-over wires.

``left >> right`` and ``left << right`` feed min(outputs, inputs) wires, first to first. Spare inputs of the component
that is fed follow the inputs of the one that feeds it. A chain's outputs are left's spare ones, then right's; a
compose's are left's, then right's spare ones. ``left & right`` share inputs pairwise from the first.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ilang_eq.lang.component import Chain, Component, Compose, Fanout, Identity, Leaf, Pair, Swap
from ilang_eq.lang.expr import Access, Literal
from ilang_eq.lang.graph import Graph, Input, Node, Source, Value, Wire

Wires: TypeAlias = tuple[Wire, ...]


@dataclass(frozen=True, slots=True)
class _Call:
    """``component`` applied to ``inputs``; its leftmost expression is number ``first``."""

    component: Component
    first: int
    inputs: Wires


_Steps: TypeAlias = Generator[_Call, Wires, Wires]


def wire(component: Component) -> Graph:
    """The dataflow graph of ``component``; node n is its n-th expression from the left."""
    nodes: list[Node | None] = [None] * component.leaves
    inputs = tuple(Input(k) for k in range(component.inputs))
    outputs = _run(_Call(component, 0, inputs), nodes)
    return Graph(component.inputs, tuple(n for n in nodes if n is not None), outputs)


def _run(call: _Call, nodes: list[Node | None]) -> Wires:
    """Apply a component, with a stack of its own in place of Python's: chains may be of any length."""
    stack = [_apply(call, nodes)]
    result: Wires | None = None
    while True:
        try:
            wanted = next(stack[-1]) if result is None else stack[-1].send(result)
            stack.append(_apply(wanted, nodes))
            result = None
        except StopIteration as stop:
            result = stop.value
            stack.pop()
            if not stack:
                return stop.value


def _apply(call: _Call, nodes: list[Node | None]) -> _Steps:
    """The outputs of a call; yields the calls it needs and is sent their outputs."""
    component, first, inputs = call.component, call.first, call.inputs
    match component:
        case Leaf(expr=expr):
            nodes[first] = Node(expr, _sources(expr.operands, inputs))
            return (Value(first),)
        case Identity():
            return inputs
        case Swap(of=of):
            return (yield _Call(of, first, inputs[1::-1] + inputs[2:]))
        case Chain(left=left, right=right):
            made = yield _Call(left, first, inputs[: left.inputs])
            fed = min(left.outputs, right.inputs)
            results = yield _Call(right, first + left.leaves, made[:fed] + inputs[left.inputs :])
            return made[fed:] + results
        case Compose(left=left, right=right):
            made = yield _Call(right, first + left.leaves, inputs[: right.inputs])
            fed = min(right.outputs, left.inputs)
            results = yield _Call(left, first, made[:fed] + inputs[right.inputs :])
            return results + made[fed:]
        case Fanout(left=left, right=right):
            a = yield _Call(left, first, inputs[: left.inputs])
            return a + (yield _Call(right, first + left.leaves, inputs[: right.inputs]))
        case Pair(left=left, right=right):
            a = yield _Call(left, first, inputs[: left.inputs])
            return a + (yield _Call(right, first + left.leaves, inputs[left.inputs :]))
        case _:
            raise TypeError(f"not a component: {component!r}")


def _sources(operands: Sequence[Access | Literal], inputs: Wires) -> tuple[Source, ...]:
    """The inputs in the places of the operands that are not numbers."""
    wires = iter(inputs)
    return tuple(next(wires) if isinstance(o, Access) else o for o in operands)
