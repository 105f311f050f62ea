"""Leaves out states that another one beats whatever the neighbours do: dead-end elimination, as for side chains.

A state is beaten if its readers cannot tell it from another that costs no more together with any operands it could
have, at every tile choice looked at (Goldstein's criterion, Biophysical Journal 66, 1994). What one class alone reads,
with all that it needs, counts as a part of that class: the best of it is chosen first. So no optimum is lost at these
tile choices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ilang_eq.extract.additive import AdditiveModel
from ilang_eq.extract.elimination import Table
from ilang_eq.extract.rows import Costs
from ilang_eq.rewrites.space import ClassId

Edges = dict[tuple[ClassId, ClassId], Costs]


def thinned(model: AdditiveModel, tables: Sequence[Table]) -> tuple[AdditiveModel, list[Table]]:
    """``model`` without the states that are beaten at every grid point of ``tables``, which are its own; and tables."""
    classes = model.structure.classes
    alone = {classes[t.scope[0]]: t.values for t in tables if len(t.scope) == 1}
    edges: Edges = {(classes[t.scope[0]], classes[t.scope[1]]): t.values for t in tables if len(t.scope) == 2}
    readers = {c: [r for r, x in edges if x == c] for c in classes}
    kept: dict[ClassId, list[int]] = {}
    closed: set[ClassId] = set()
    for c in classes:
        operands = [x for r, x in edges if r == c]
        private = [x for x in operands if x in closed and readers[x] == [c] and x not in model.structure.layouts]
        for x in private:
            alone[c] = alone[c] + np.min(edges[c, x] + alone[x][None], axis=1)
        if len(private) == len(operands):
            closed.add(c)
        others = [edges[c, x] for x in operands if x not in private]
        kept[c] = _unbeaten(alone[c], [edges[r, c] for r in readers[c]], others, _packed(model, c))
        alone[c] = alone[c][kept[c]]
        for r in readers[c]:
            edges[r, c] = edges[r, c][:, kept[c]]
        for x in operands:
            edges[c, x] = edges[c, x][kept[c]]
    left = [kept[c] for c in classes]
    return _restricted(model, kept), [Table(t.scope, t.values[np.ix_(*(left[v] for v in t.scope))]) for t in tables]


def _packed(model: AdditiveModel, c: ClassId) -> list[frozenset[ClassId]]:
    """The packed arguments that each state of a class reads; none in a large space, where there is no room for both."""
    if not model.structure.small:
        return [frozenset()] * len(model.domains[c])
    reads = [frozenset() if s is None else frozenset(model.structure.reads(s.fusion)) for s in model.domains[c]]
    return [read & model.structure.copies for read in reads]


def _unbeaten(
    alone: Costs, above: Sequence[Costs], below: Sequence[Costs], packed: Sequence[frozenset[ClassId]]
) -> list[int]:
    """The states of a class that no other beats.

    Args:
        alone: (states, G): the costs of each by itself.
        above: (reader's states, states, G): what each reader pays for each.
        below: (states, operand's states, G): what each pays for each operand.
        packed: of states that differ in this, none beats another.
    """
    looks: dict[tuple[frozenset[ClassId], bytes], list[int]] = {}
    for n in range(len(alone)):
        looks.setdefault((packed[n], b"".join(table[:, n].tobytes() for table in above)), []).append(n)
    found: list[int] = []
    for alike in looks.values():
        left = sorted(alike, key=lambda n: (float(alone[n].sum()), n))
        while left:
            best, *others = left
            found.append(best)
            left = [n for n, beaten in zip(others, _beaten(best, others, alone, below), strict=True) if not beaten]
    return sorted(found)


def _beaten(best: int, others: Sequence[int], alone: Costs, below: Sequence[Costs]) -> list[bool]:
    """For each of ``others``, whether ``best`` costs no more, whatever the operands that the other one can have."""
    margin = alone[others] - alone[best]
    allowed = np.ones(len(others), dtype=np.bool_)
    for table in below:
        possible = np.isfinite(table[others])
        allowed &= ~(possible & np.isinf(table[best])).any(axis=(1, 2))
        mine = np.where(np.isfinite(table[best]), table[best], 0.0)
        more = np.where(possible, table[others], np.inf) - mine
        margin = margin + np.min(more, axis=1, initial=np.inf)
    return (allowed & (margin >= 0).all(axis=1)).tolist()


def _restricted(model: AdditiveModel, kept: Mapping[ClassId, list[int]]) -> AdditiveModel:
    domains = {c: tuple(model.domains[c][n] for n in states) for c, states in kept.items()}
    sites = {(r, x): where[np.ix_(kept[r], kept[x])] for (r, x), where in model.sites.items()}
    return AdditiveModel(model.structure, model.processor, domains, sites)
