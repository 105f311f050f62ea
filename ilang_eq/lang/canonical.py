"""The canonical form of what a component computes: equal for components that differ in names and numbering only, or
in how often they say the same.
"""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.lang.graph import Graph, Node, Source, Value, Wire
from ilang_eq.lang.unscheduled import unscheduled


def canonical(graph: Graph) -> Graph:
    """``graph`` without its schedule, axes renamed, and nodes numbered as they are reached from the outputs.

    Producers come before their readers, operand 0's first, so the numbers do not depend on how the component was
    written. What is the same of the same operands is one node: ``c & c`` computes c once. Inputs keep their numbers:
    they are the function's signature.
    """
    plain = unscheduled(graph)
    number: dict[int, int] = {}
    distinct: dict[Node, int] = {}

    def renumbered(source: Source) -> Source:
        return Value(number[source.node]) if isinstance(source, Value) else source

    def output(wire: Wire) -> Wire:
        return Value(number[wire.node]) if isinstance(wire, Value) else wire

    for n in _reached(plain):
        node = plain.nodes[n]
        node = replace(node, operands=tuple(map(renumbered, node.operands)))
        number[n] = distinct.setdefault(node, len(distinct))
    return replace(plain, nodes=tuple(distinct), outputs=tuple(map(output, plain.outputs)))


def _reached(graph: Graph) -> tuple[int, ...]:
    """The nodes in post-order from the outputs; without recursion, since chains may be of any length."""
    done: dict[int, None] = {}
    stack = [(wire.node, False) for wire in reversed(graph.outputs) if isinstance(wire, Value)]
    while stack:
        n, ready = stack.pop()
        if ready:
            done[n] = None
        elif n not in done:
            stack.append((n, True))
            operands = reversed(graph.nodes[n].operands)
            stack.extend((s.node, False) for s in operands if isinstance(s, Value) and s.node not in done)
    return tuple(done)
