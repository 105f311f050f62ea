"""The classes of the e-graph read back: reachable, acyclic, numbered, each equal computation once.

Invariants of what ``decode`` returns:
  * a class's operands have lower numbers; the component's own expression comes first in its class
  * of ``x ∘ y`` and ``y ∘ x`` only one is kept, the component's own if it is one of them
  * a class that an input or a number belongs to holds nothing else
  * every output is computed: one that is only an input, a number or a view gets a copy of it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from ilang_eq.lang.graph import Input
from ilang_eq.lang.ops import OPS
from ilang_eq.rewrites.encode import term_name
from ilang_eq.rewrites.engine import Cell, Engine, Row
from ilang_eq.rewrites.naming import Terms
from ilang_eq.rewrites.space import Apply, AxisId, ClassId, EClass, ENode, Number, Read, Reduce, Space, View
from ilang_eq.rewrites.vocabulary import COMMUTATIVE, NODE_TABLES

Nodes = dict[ClassId, tuple[ENode, ...]]


@dataclass(frozen=True, slots=True)
class Classes:
    """The equal computations found, and which of them the component returns."""

    classes: dict[ClassId, EClass]
    outputs: tuple[tuple[ClassId | Input, tuple[AxisId, ...]], ...]


def operands(node: ENode) -> tuple[ClassId, ...]:
    """The classes that a node reads."""
    match node:
        case Read() | Number():
            return ()
        case Apply(_, read):
            return read
        case Reduce(_, _, x) | View(x, _, _):
            return (x,)
        case other:
            assert_never(other)


def is_computed(found: EClass) -> bool:
    """Does an expression compute this class? If not, it is an input, a number or a view."""
    return any(isinstance(node, Apply | Reduce) for node in found.nodes)


def is_copy(space: Space, c: ClassId) -> bool:
    """Whether a class is a packed argument."""
    return all(isinstance(n, Apply) and _copies_argument(space, n) for n in space.classes[c].nodes)


def _copies_argument(space: Space, node: Apply) -> bool:
    match node.operands:
        case (source,):
            copied = OPS[node.op].unary_form == "copy"
            return copied and isinstance(space.classes[source].nodes[0], Read)
        case _:
            return False


def constant_classes(space: Space) -> frozenset[ClassId]:
    """The classes that depend on inputs that stay the same, and on nothing else."""
    found: set[ClassId] = set()
    for c, eclass in sorted(space.classes.items()) if space.constants else ():
        reads = {n.input for n in eclass.nodes if isinstance(n, Read)}
        own = eclass.nodes[:1]
        if own and reads <= space.constants and all(found.issuperset(operands(node)) for node in own):
            found.add(c)
    return frozenset(found)


def decode(engine: Engine, terms: Terms) -> Classes:
    """The classes that the outputs of ``terms`` reach, as ``encode`` put them in and the rules grew them."""
    tables = engine.tables((*NODE_TABLES, "axes", *map(term_name, range(len(terms.nodes)))))
    order = {handle: n for n, handle in enumerate(sorted({handle for handle, _ in tables["axes"]}))}
    axes = {order[handle]: tuple(sorted(found)) for handle, found in tables["axes"]}
    values = [order[tables[term_name(n)][0][0]] for n in range(len(terms.nodes))]
    nodes: dict[ClassId, list[ENode]] = {c: [] for c in axes}
    for position, term in enumerate(terms.nodes):
        nodes[values[position]].append(renumbered(term, values.__getitem__))
    for c, node in _read_nodes(tables, order):
        nodes[c].append(node)
    kept = _acyclic({c: _distinct(found) for c, found in nodes.items()})
    returned = [values[wire] for wire, _ in terms.outputs if not isinstance(wire, Input)]
    numbers = _number(kept, returned)
    classes = {
        number: EClass(axes[c], tuple(renumbered(node, numbers.__getitem__) for node in kept[c]))
        for c, number in numbers.items()
    }
    outputs = [(wire if isinstance(wire, Input) else numbers[values[wire]], dims) for wire, dims in terms.outputs]
    return Classes(*_computed(classes, outputs))


def renumbered(node: ENode, number: Callable[[ClassId], ClassId]) -> ENode:
    """``node`` with its operands renumbered."""
    match node:
        case Read() | Number():
            return node
        case Apply(op, read):
            return Apply(op, tuple(map(number, read)))
        case Reduce(op, axes, x):
            return Reduce(op, axes, number(x))
        case View(x, source, axes):
            return View(number(x), source, axes)
        case other:
            assert_never(other)


def _read_nodes(tables: dict[str, list[Row]], order: dict[Cell, ClassId]) -> Iterator[tuple[ClassId, ENode]]:
    """Every e-node with its class, table by table."""
    for index, dims, t in tables["Read"]:
        yield order[t], Read(index, dims)
    read = {(index, dims): t for index, dims, t in tables["Read"]}
    for index, dims, t in tables["Packed"]:
        yield order[t], Apply("add", (order[read[index, dims]],))
    for value, t in tables["Num"]:
        yield order[t], Number(value)
    for op, x, t in tables["Un"]:
        yield order[t], Apply(op, (order[x],))
    for op, x, y, t in tables["Bin"]:
        yield order[t], Apply(op, (order[x], order[y]))
    for op, reduced, x, t in tables["Red"]:
        yield order[t], Reduce(op, tuple(sorted(reduced)), order[x])
    for x, source, dims, t in tables["View"]:
        yield order[t], View(order[x], source, dims)


def _distinct(nodes: Iterable[ENode]) -> tuple[ENode, ...]:
    """Without repeats and commuted repeats; leaves alone if there are any."""
    found: dict[ENode, ENode] = {}
    for node in nodes:
        match node:
            case Apply(op, (x, y)) if op in COMMUTATIVE:
                found.setdefault(Apply(op, (min(x, y), max(x, y))), node)
            case _:
                found.setdefault(node, node)
    leaves = tuple(node for node in found.values() if isinstance(node, Read | Number))
    return leaves[:1] or tuple(found.values())


def _acyclic(nodes: Nodes) -> Nodes:
    """Without the nodes that close a cycle of classes; every class keeps its least deep node."""
    cyclic = _cyclic(nodes)
    depths = _depths(nodes)

    def descends(c: ClassId, node: ENode) -> bool:
        return all(x not in cyclic or depths[x] < depths[c] for x in operands(node))

    return {c: tuple(n for n in found if c not in cyclic or descends(c, n)) for c, found in nodes.items()}


def _cyclic(nodes: Nodes) -> frozenset[ClassId]:
    """The classes on cycles, and those between cycles: what is left after peeling off both ends."""
    below = {c: {x for node in found for x in operands(node)} for c, found in nodes.items()}
    above: dict[ClassId, set[ClassId]] = {c: set() for c in nodes}
    for c, read in below.items():
        for x in read:
            above[x].add(c)
    return frozenset(_peeled(below, above) & _peeled(above, below))


def _peeled(before: dict[ClassId, set[ClassId]], after: dict[ClassId, set[ClassId]]) -> set[ClassId]:
    """The classes that no order reaches in which each comes after all of its ``before``."""
    waiting = {c: len(read) for c, read in before.items()}
    ready = [c for c, count in waiting.items() if count == 0]
    while ready:
        c = ready.pop()
        del waiting[c]
        for reader in after[c]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                ready.append(reader)
    return set(waiting)


def _depths(nodes: Nodes) -> dict[ClassId, int]:
    """The height of each class's least deep term."""
    readers: dict[ClassId, list[tuple[ClassId, ENode]]] = {c: [] for c in nodes}
    ready: list[tuple[ClassId, ENode]] = []
    for c, found in nodes.items():
        for node in found:
            for x in set(operands(node)):
                readers[x].append((c, node))
            if not operands(node):
                ready.append((c, node))
    depths: dict[ClassId, int] = {}
    while ready:
        reached: list[ClassId] = []
        for c, node in ready:
            if c not in depths and all(x in depths for x in operands(node)):
                reached.append(c)
        depth = max(depths.values(), default=-1) + 1
        depths.update(dict.fromkeys(reached, depth))
        ready = [reader for c in dict.fromkeys(reached) for reader in readers[c]]
    return depths


def _number(nodes: Nodes, roots: Iterable[ClassId]) -> dict[ClassId, ClassId]:
    """A number for each class that the roots reach, operands first."""
    numbers: dict[ClassId, ClassId] = {}
    stack = [(c, False) for c in reversed(list(roots))]
    while stack:
        c, ready = stack.pop()
        if c in numbers:
            continue
        if ready:
            numbers[c] = len(numbers)
        else:
            stack.append((c, True))
            read = dict.fromkeys(x for node in nodes[c] for x in operands(node))
            stack.extend((x, False) for x in reversed(read) if x not in numbers)
    return numbers


def _computed(
    classes: dict[ClassId, EClass], outputs: list[tuple[ClassId | Input, tuple[AxisId, ...]]]
) -> tuple[dict[ClassId, EClass], tuple[tuple[ClassId | Input, tuple[AxisId, ...]], ...]]:
    """With a copy computed for each output that is only something else under other axes."""
    copies: dict[ClassId, ClassId] = {}
    grown = dict(classes)
    for wire, _ in outputs:
        if not isinstance(wire, Input) and wire not in copies and not is_computed(classes[wire]):
            copies[wire] = len(grown)
            grown[len(grown)] = EClass(classes[wire].axes, (Apply("add", (wire,)),))
    return grown, tuple((wire if isinstance(wire, Input) else copies.get(wire, wire), dims) for wire, dims in outputs)
