"""Leaves out detours: ways to compute a class that take more operations than another and spare nothing in return.

before →  max_j 20·x  or  20·(max_j x), in a component that needs 20·x anyhow
after  →  max_j 20·x

Equal computations often differ in work that every schedule has to do on top. What *every* way to compute the outputs
needs is there anyhow and counts for nothing; of what is left, a way is a detour if it takes noticeably longer than
another, or computes all that the other does and something besides. Packed arguments are extra work on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ilang_eq.extract.expression_cost import rate_of
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.restriction import restricted
from ilang_eq.lang.graph import Input
from ilang_eq.rewrites.decode import constant_classes, is_copy, operands
from ilang_eq.rewrites.space import Apply, AxisId, ClassId, ENode, Reduce, Space
from ilang_eq.rewrites.vocabulary import COMMUTATIVE

NOTICEABLE = 0.01
"""The part of the operations of a good choice by which a detour is longer than another way."""


def without_detours(space: Space, sizes: Mapping[AxisId, int], machine: Machine) -> Space:
    """``space`` without the nodes that are detours; ``sizes`` are the extents of its axes."""
    ways = _Ways.of(space, sizes, machine)
    limit = NOTICEABLE * ways.total

    def detour(one: _Way, other: _Way) -> bool:
        return one.time > other.time + limit or (other.plan < one.plan and other.time <= one.time)

    return _kept(space, ways, lambda found: [one for one in found if not any(detour(one, other) for other in found)])


def shortest(space: Space, sizes: Mapping[AxisId, int], machine: Machine) -> Space:
    """``space`` with one way to compute each class, that of fewest operations, with arguments packed or not."""
    ways = _Ways.of(space, sizes, machine)
    return _kept(space, ways, lambda found: [min(found, key=lambda way: (way.time, way.node))])


def _kept(space: Space, ways: _Ways, choose: Callable[[list[_Way]], list[_Way]]) -> Space:
    """``space`` with the nodes that ``choose`` keeps, and those that compute the same from packed arguments."""
    kept: set[tuple[ClassId, int]] = set()
    for c, eclass in space.classes.items():
        plain = [_plain(space, node) for node in eclass.nodes]
        found = [_Way.of(ways, c, plain.index(node)) for node in dict.fromkeys(plain)]
        chosen = {plain[way.node] for way in (choose(found) if len(found) > 1 else found)}
        kept |= {(c, n) for n, node in enumerate(plain) if node in chosen}
    return restricted(space, lambda c, n: (c, n) in kept)


def _plain(space: Space, node: ENode) -> ENode:
    """``node`` on the arguments themselves where it reads packed ones."""
    if not isinstance(node, Apply):
        return node
    read = [operands(space.classes[x].nodes[0])[0] if is_copy(space, x) else x for x in node.operands]
    return Apply(node.op, tuple(sorted(read) if node.op in COMMUTATIVE else read))


@dataclass(frozen=True, slots=True)
class _Way:
    """Node ``node`` of some class: what it needs that is not there anyhow, and how long both take together."""

    node: int
    plan: Plan
    time: float

    @staticmethod
    def of(ways: _Ways, c: ClassId, n: int) -> _Way:
        """Node ``n`` of class ``c``."""
        node = ways.space.classes[c].nodes[n]
        plan = ways.plan(node)
        return _Way(n, plan, ways.time(c, node, plan))


Plan = frozenset[ClassId]
"""Classes to compute that may as well be left out."""


@dataclass(frozen=True, slots=True)
class _Ways:
    """How long the classes of a space take, in nanoseconds at full speed.

    Args:
        space: the classes.
        operations: of every node of a class, its own operations.
        best: the node of each class that takes least, with all that it needs.
        needed: what it takes besides what is there anyhow.
        total: of all classes that a good choice computes.
    """

    space: Space
    operations: Mapping[tuple[ClassId, ENode], float]
    best: Mapping[ClassId, ENode]
    needed: Mapping[ClassId, Plan]
    total: float

    @staticmethod
    def of(space: Space, sizes: Mapping[AxisId, int], machine: Machine) -> _Ways:
        """What ``space`` takes."""
        free = constant_classes(space)
        operations = {
            (c, node): 0.0 if c in free else _operations(node, (*eclass.axes, *_reduced(node)), sizes, machine)
            for c, eclass in space.classes.items()
            for node in eclass.nodes
        }
        found = _Ways(space, operations, {}, {}, 0.0)
        anyhow = _anyhow(space) | free
        best: dict[ClassId, ENode] = {}
        needed: dict[ClassId, Plan] = {}
        for c, eclass in sorted(space.classes.items()):
            found = _Ways(space, operations, best, needed, 0.0)
            node = min(eclass.nodes, key=lambda n: found.time(c, n, found.plan(n)))
            best[c] = node
            needed[c] = frozenset() if c in anyhow else found.plan(node) | {c}
        used = _reached((of for of, _ in space.outputs if not isinstance(of, Input)), best)
        return _Ways(space, operations, best, needed, sum(operations[c, best[c]] for c in used))

    def plan(self, node: ENode) -> Plan:
        """The classes that ``node`` needs and that are not there anyhow."""
        return frozenset().union(*(self.needed[x] for x in operands(node)))

    def time(self, c: ClassId, node: ENode, plan: Plan) -> float:
        """Computing class ``c`` by ``node``, and ``plan``."""
        return self.operations[c, node] + sum(self.operations[x, self.best[x]] for x in sorted(plan))


def _anyhow(space: Space) -> frozenset[ClassId]:
    """The classes that every way to compute the outputs computes."""
    always: dict[ClassId, frozenset[ClassId]] = {}
    for c, eclass in sorted(space.classes.items()):
        ways = [frozenset().union(*(always[x] for x in operands(node))) for node in eclass.nodes]
        always[c] = frozenset.intersection(*ways) | {c}
    return frozenset().union(*(always[of] for of, _ in space.outputs if not isinstance(of, Input)))


def _reached(roots: Iterable[ClassId], best: Mapping[ClassId, ENode]) -> list[ClassId]:
    found: set[ClassId] = set()
    stack = list(roots)
    while stack:
        c = stack.pop()
        if c not in found:
            found.add(c)
            stack.extend(operands(best[c]))
    return sorted(found)


def _reduced(node: ENode) -> tuple[AxisId, ...]:
    return node.axes if isinstance(node, Reduce) else ()


def _operations(node: ENode, axes: Iterable[AxisId], sizes: Mapping[AxisId, int], machine: Machine) -> float:
    """Nanoseconds of a node's own operations at full speed."""
    if not isinstance(node, Apply | Reduce):
        return 0.0
    rate = rate_of(node.op, unary=isinstance(node, Apply) and len(node.operands) == 1)
    return math.prod(sizes[a] for a in axes) / getattr(machine.vector, rate)
