"""Random programs biased towards what the algebra rewrites: products and quotients under reductions, with numbers."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilang_eq.lang.expr import Access, Expr, Literal
from ilang_eq.lang.graph import Graph, Input, Node, Source, Value

_BINARY = ("mul", "mul", "mul", "div", "div", "add", "sub", "max")
_UNARY = ("sub", "sub", "add", "div", "pow", "log")
_REDUCTIONS = ("add", "add", "add", "add", "max", "min", "mul")
_NUMBERS = (1.0, 2.0, 0.5, -3.0)


@dataclass(frozen=True, slots=True)
class Program:
    """A graph, and positive arrays near one to call it with."""

    graph: Graph
    arrays: tuple[NDArray[np.float64], ...]


def random_program(seed: int) -> Program:
    """A deterministic program per seed: four to nine expressions over at most four axes, α-renamed at random."""
    rng = random.Random(seed)
    inputs = ["".join(rng.sample("ijkl", rng.choice((0, 1, 1, 2, 2, 2)))) for _ in range(rng.randint(1, 4))]
    known: list[tuple[Source, str]] = [(Input(k), axes) for k, axes in enumerate(inputs)]
    nodes: list[Node] = []
    for _ in range(rng.randint(4, 9)):
        node, output = _node(rng, known)
        known.append((Value(len(nodes)), output))
        nodes.append(_renamed(rng, node))
    read = {source for node in nodes for source in node.operands}
    outputs = tuple(Value(n) for n in range(len(nodes)) if Value(n) not in read)
    extents = {axis: rng.choice((1, 2, 3)) for axis in "ijkl"}
    data = np.random.default_rng(seed)
    arrays = tuple(data.uniform(0.5, 1.5, [extents[a] for a in axes]) for axes in inputs)
    passed = tuple(Input(k) for k in range(len(inputs)) if Input(k) not in read)
    return Program(Graph(len(inputs), tuple(nodes), outputs + passed), arrays)


def _node(rng: random.Random, known: list[tuple[Source, str]]) -> tuple[Node, str]:
    source, axes = rng.choice(known[-4:] if rng.random() < 0.7 else known)
    kind = rng.random()
    if axes and kind < 0.35:
        kept = "".join(rng.sample(axes, rng.randint(0, len(axes) - 1)))
        return Node(Expr(rng.choice(_REDUCTIONS), (Access(axes),), kept), (source,)), kept
    if kind < 0.45:
        kept = "".join(rng.sample(axes, len(axes)))
        return Node(Expr(rng.choice(_UNARY), (Access(axes),), kept), (source,)), kept
    if kind < 0.55:
        number = Literal(rng.choice(_NUMBERS))
        op = rng.choice(("mul", "div", "pow" if number.value == 2.0 else "mul"))
        return Node(Expr(op, (Access(axes), number), axes), (source, number)), axes
    other, theirs = rng.choice(known)
    kept = "".join(dict.fromkeys(axes + theirs))
    return Node(Expr(rng.choice(_BINARY), (Access(axes), Access(theirs)), kept), (source, other)), kept


def _renamed(rng: random.Random, node: Node) -> Node:
    letters = dict(zip("ijkl", rng.sample("abcdefgh", 4), strict=True))
    operands = tuple(
        Access("".join(letters[a] for a in o.axes)) if isinstance(o, Access) else o for o in node.expr.operands
    )
    return Node(Expr(node.expr.op, operands, "".join(letters[a] for a in node.expr.output)), node.operands)
