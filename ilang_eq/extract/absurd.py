"""Leaves out what no schedule could save: ways to compute a class that alone take longer than everything else should.

Equal computations may differ by powers of an extent (a product of matrices in the wrong order). Such a way is never
chosen, but it makes values look shared that are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ilang_eq.extract.expression_cost import rate_of
from ilang_eq.extract.fusions import Fusion
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import Apply, AxisId, ClassId

_ABSURD = 3.0
"""A way is left out if it and one thing it needs take this many times as long as all of a good choice."""


def without_absurd(structure: Structure, sizes: Mapping[AxisId, int], machine: Machine) -> Structure:
    """``structure`` without the fusions whose operations, or whose operands', take far longer than a good choice.

    A variant that is left in no fusion of its own reads nothing any more, so that nothing looks shared for its sake.
    """
    times = {f: _operations(structure, f, sizes, machine) for c in structure.classes for f in structure.fusions(c)}
    best: dict[ClassId, Fusion] = {}
    total: dict[ClassId, float] = {}
    least: dict[ClassId, float] = {}
    chains: dict[Fusion, float] = {}
    for c in structure.classes:
        sums = {f: times[f] + sum(total[x] for x in structure.reads(f)) for f in structure.fusions(c)}
        best[c] = min(sums, key=lambda f: (sums[f], f))
        total[c] = sums[best[c]]
        for f in structure.fusions(c):
            chains[f] = times[f] + max((least[x] for x in structure.reads(f)), default=0.0)
        least[c] = min(chains[f] for f in structure.fusions(c))
    limit = _ABSURD * sum(times[best[c]] for c in _used(structure, best))
    excluded = frozenset(f for f, time in chains.items() if time > limit)
    useful = {f.root for f in chains if f not in excluded}
    dropped = frozenset(f.root for f in excluded if f.root not in useful)
    return replace(structure, excluded=excluded, dropped=dropped) if excluded else structure


def _operations(structure: Structure, fusion: Fusion, sizes: Mapping[AxisId, int], machine: Machine) -> float:
    """Nanoseconds of all operations of a fusion, at full speed."""
    points = math.prod(sizes[a] for a in structure.loops(fusion.root))
    nodes = [structure.node(member) for member in fusion.members]
    rates = [rate_of(n.op, unary=isinstance(n, Apply) and len(n.operands) == 1) for n in nodes]
    return points * sum(1 / getattr(machine.vector, rate) for rate in rates)


def _used(structure: Structure, best: Mapping[ClassId, Fusion]) -> set[ClassId]:
    """The classes that the outputs need if each is computed in its best way."""
    found: set[ClassId] = set()
    stack = list(structure.layouts)
    while stack:
        c = stack.pop()
        if c not in found:
            found.add(c)
            stack.extend(structure.reads(best[c]))
    return found
