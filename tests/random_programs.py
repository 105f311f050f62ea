"""Random dataflow graphs under random schedules, biased towards what fuses: shared tiles, common orders, statistics."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np

from ilang_eq.lang.expr import Access, Expr, Init, Literal, Loop, Operand, OrderItem, Stage
from ilang_eq.lang.graph import Graph, Input, Node, Source, Value

POINTWISE_UNARY = ("sub", "pow", "add", "div", "log", "max", "not")
POINTWISE_BINARY = ("mul", "sub", "div", "add", "max", "min", "mul", "sub", "gt", "pow")
REDUCTIONS = ("add", "add", "add", "max", "max", "min", "mul", "and", "or")
SPLITS = ((), (), (2,), (3,), (2, 2))


@dataclass(frozen=True, slots=True)
class Case:
    """A program without a schedule, the same with one, and inputs for both."""

    plain: Graph
    scheduled: Graph
    arrays: tuple[np.ndarray, ...]


def random_case(seed: int) -> Case:
    """A deterministic case per seed. The schedule may be one that lowering refuses."""
    rng = random.Random(seed)
    extents = {axis: rng.choice((1, 2, 3, 4, 5, 7) + ((0,) if rng.random() < 0.02 else ())) for axis in "ijkl"}
    graph, input_axes = _graph(rng)
    data = np.random.default_rng(seed)
    arrays = tuple(data.standard_normal([extents[a] for a in axes], dtype=np.float32) for axes in input_axes)
    if rng.random() < 0.5:
        arrays = tuple((np.abs(a) + 0.5).astype(np.float32) for a in arrays)
    return Case(graph, _schedule(rng, graph), tuple(np.asarray(a) for a in arrays))


def _graph(rng: random.Random) -> tuple[Graph, list[str]]:
    inputs = ["".join(rng.sample("ijkl", rng.choice((1, 2, 2, 2, 3)))) for _ in range(rng.choice((1, 1, 2, 3)))]
    known: list[tuple[Source, str]] = [(Input(k), axes) for k, axes in enumerate(inputs)]
    nodes: list[Node] = []
    for _ in range(rng.randint(1, 7)):
        for node, axes in _statistic(rng, known, len(nodes)) if rng.random() < 0.3 else [_node(rng, known)]:
            known.append((Value(len(nodes)), axes))
            nodes.append(node)
    read = {s for node in nodes for s in node.operands}
    outputs = [Value(n) for n in range(len(nodes)) if Value(n) not in read]
    used = sorted(s.index for s in read if isinstance(s, Input))
    number = {Input(old): Input(new) for new, old in enumerate(used)}
    nodes = [replace(n, operands=tuple(number.get(s, s) for s in n.operands)) for n in nodes]
    if rng.random() < 0.1:
        outputs.append(Value(rng.randrange(len(nodes))))
    return Graph(len(used), tuple(nodes), tuple(dict.fromkeys(outputs))), [inputs[k] for k in used]


def _node(rng: random.Random, known: list[tuple[Source, str]]) -> tuple[Node, str]:
    """A node over known values; each value carries the names of its dimensions, shared by the whole graph."""
    source, axes = _pick(rng, known)
    kind = rng.random()
    if kind < 0.35 and axes:
        kept = "".join(rng.sample(axes, rng.randint(0, len(axes) - 1)))
        return _renamed(rng, Expr(rng.choice(REDUCTIONS), (Access(axes),), kept), (source,)), kept
    if kind < 0.55:
        kept = "".join(rng.sample(axes, len(axes))) if rng.random() < 0.3 else axes
        return _renamed(rng, Expr(rng.choice(POINTWISE_UNARY), (Access(axes),), kept), (source,)), kept
    if kind < 0.62:
        number = Literal(rng.choice((0.0, 0.5, 2.0, -1.0, 1.25)))
        pair: tuple[Operand, Operand] = (Access(axes), number) if rng.random() < 0.5 else (number, Access(axes))
        sources: tuple[Source, Source] = (source, number) if pair[1] is number else (number, source)
        return _renamed(rng, Expr(rng.choice(("mul", "sub", "add", "pow", "max")), pair, axes), sources), axes
    other, theirs = _pick(rng, known)
    union = "".join(dict.fromkeys(axes + theirs))
    kept = "".join(rng.sample(union, len(union))) if rng.random() < 0.4 else union
    if len(union) > 3 and rng.random() < 0.7:
        return _node(rng, known)
    return _renamed(
        rng, Expr(rng.choice(POINTWISE_BINARY), (Access(axes), Access(theirs)), kept), (source, other)
    ), kept


def _statistic(rng: random.Random, known: list[tuple[Source, str]], first: int) -> list[tuple[Node, str]]:
    """A reduction, a use of it on what was reduced, and a reduction of that: where online repairs may arise."""
    source, axes = _pick(rng, known)
    if len(axes) < 2:
        return [_node(rng, known)]
    kept = axes.replace(rng.choice(axes), "")
    statistic = Expr(rng.choice(("max", "add", "max", "min")), (Access(axes),), kept)
    pair = (Access(axes), Access(kept)) if rng.random() < 0.9 else (Access(kept), Access(axes))
    sources = (source, Value(first)) if pair[0] == Access(axes) else (Value(first), source)
    nodes = [(Node(statistic, (source,)), kept)]
    nodes.append((Node(Expr(rng.choice(("sub", "div", "sub", "mul")), pair, axes), sources), axes))
    for _ in range(rng.randint(0, 3)):
        last = Value(first + len(nodes) - 1)
        if rng.random() < 0.6:
            nodes.append((Node(Expr(rng.choice(("pow", "pow", "sub")), (Access(axes),), axes), (last,)), axes))
        else:
            other, theirs = rng.choice([k for k in known if set(k[1]) <= set(axes)])
            both = (Access(axes), Access(theirs))
            nodes.append((Node(Expr(rng.choice(("mul", "div", "add")), both, axes), (last, other)), axes))
    total = Expr(rng.choice(("add", "add", "max")), (Access(axes),), kept if rng.random() < 0.9 else "")
    return [*nodes, (Node(total, (Value(first + len(nodes) - 1),)), total.output)]


def _pick(rng: random.Random, known: list[tuple[Source, str]]) -> tuple[Source, str]:
    return known[-1] if rng.random() < 0.5 else rng.choice(known)


def _renamed(rng: random.Random, expr: Expr, sources: tuple[Source, ...]) -> Node:
    """The axes under other letters: names mean nothing between expressions."""
    letters = dict(zip("ijkl", rng.sample("abcdijklmn", 4), strict=True)) if rng.random() < 0.3 else None
    if letters is None:
        return Node(expr, sources)

    def rename(axes: str) -> str:
        return "".join(letters[a] for a in axes)

    operands = tuple(Access(rename(o.axes)) if isinstance(o, Access) else o for o in expr.operands)
    return Node(replace(expr, operands=operands, output=rename(expr.output)), sources)


def _schedule(rng: random.Random, graph: Graph) -> Graph:
    """Splits, orders and stagings: mostly one tiling and one loop order for the whole graph."""
    factors = {axis: rng.choice(SPLITS) for axis in "abcdijklmn"}
    if rng.random() < 0.5:
        factors = dict.fromkeys("abcdijklmn", rng.choice(SPLITS))
    ranking = {
        (axis, level): (level if rng.random() < 0.9 else 0, rng.random()) for axis in factors for level in range(3)
    }
    site = (rng.choice((0, 0, 1)), rng.random())
    tidy = rng.random() < 0.5
    nodes = []
    for node in graph.nodes:
        mine = factors if tidy or rng.random() < 0.95 else {axis: rng.choice(SPLITS) for axis in factors}
        nodes.append(Node(_scheduled(rng, node, mine, ranking, site, tidy), node.operands))
    return replace(graph, nodes=tuple(nodes))


def _scheduled(
    rng: random.Random,
    node: Node,
    factors: dict[str, tuple[int, ...]],
    ranking: dict[tuple[str, int], tuple[int, float]],
    site: tuple[int, float],
    tidy: bool,
) -> Expr:
    expr = node.expr
    loops = [Loop(axis, level) for axis in expr.axes for level in range(len(factors[axis]) + 1)]
    loops.sort(key=lambda loop: ranking[loop.axis, loop.level])
    if not tidy and rng.random() < 0.1:
        rng.shuffle(loops)
    order: list[OrderItem] = list(loops)
    for k, source in enumerate(node.operands):
        if isinstance(source, Value) and (tidy or rng.random() < 0.75):
            common = sum(1 for item in order if not isinstance(item, Loop) or ranking[item.axis, item.level] < site)
            order.insert(common if tidy or rng.random() < 0.7 else rng.randint(0, len(order)), Stage(k))
    if expr.reduced and rng.random() < 0.05:
        last = max((order.index(loop) for loop in loops if loop.axis in expr.output), default=-1)
        order.insert(rng.randint(last + 1, len(order)), Init())
    splits = tuple((axis, factors[axis]) for axis in expr.axes if factors[axis])
    return replace(expr, splits=splits, order=tuple(order))
