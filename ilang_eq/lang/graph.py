"""The dataflow graph a component stands for: expressions, and who reads whom.

Invariants:
  * ``nodes[n]`` is the component's n-th expression leaf from the left (so nodes are not sorted; ``order()`` is)
  * ``node.operands`` matches ``node.expr.operands`` one to one; a ``Literal`` operand is its own source
  * the graph is acyclic, and every input is read by a node or returned as an output
"""

from __future__ import annotations

from dataclasses import dataclass

from ilang_eq.lang.expr import Expr, Literal


@dataclass(frozen=True, slots=True)
class Input:
    """Argument ``index`` of the component."""

    index: int


@dataclass(frozen=True, slots=True)
class Value:
    """What node ``node`` computes."""

    node: int


Wire = Input | Value
Source = Input | Value | Literal


@dataclass(frozen=True, slots=True)
class Node:
    """An expression applied to its operands."""

    expr: Expr
    operands: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A wired component: ``inputs`` arguments in, ``outputs`` out."""

    inputs: int
    nodes: tuple[Node, ...]
    outputs: tuple[Wire, ...]

    def order(self) -> tuple[int, ...]:
        """Node numbers so that producers come before their readers; deterministic."""
        done: dict[int, None] = {}
        stack = [(n, False) for n in reversed(range(len(self.nodes)))]
        while stack:
            n, ready = stack.pop()
            if ready:
                done[n] = None
            elif n not in done:
                stack.append((n, True))
                reads = [s.node for s in self.nodes[n].operands if isinstance(s, Value)]
                stack.extend((r, False) for r in reversed(reads) if r not in done)
        return tuple(done)

    def readers(self, node: int) -> tuple[tuple[int, int], ...]:
        """(reader, operand position) of every read of ``node`` by another node."""
        wire = Value(node)
        return tuple((m, k) for m, r in enumerate(self.nodes) for k, s in enumerate(r.operands) if s == wire)
