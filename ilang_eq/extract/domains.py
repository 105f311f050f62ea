"""The states worth looking at: grown from what the readers' states allow, and thinned where nobody can tell them apart.

Two states with the same interface (the loops shared with others, the layout, the kernel's parallelism) differ for
nobody else: of these only the cheapest at each tile choice are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ilang_eq.extract.elimination import TooWide
from ilang_eq.extract.fusions import Fusion, Scope
from ilang_eq.extract.states import FREE, Order, State, Ties, brings, depths, joined, left
from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import AxisId, ClassId, Nest, Variant

Costs = NDArray[np.float64]
Row = tuple[Nest, Order]
Estimate = Callable[[Fusion, tuple[Row, ...]], tuple[Costs, Costs]]
"""For candidate loops of a fusion, by tile choice: the time of one thread, and the busiest thread's share of it."""

Domain = tuple[State | None, ...]
"""The states of a class; None, if it is there, means that the class is not computed."""

_MOST_STATES = 1500
"""States of all classes together; spaces with more have never been narrow enough."""

_PERMUTED = 3
"""Output axes of which each may be the innermost; of more, only the last, but for copies."""


@dataclass(frozen=True, slots=True)
class Breadth:
    """How much of a space goes into a model.

    Args:
        scope: which fusions.
        alternatives: several ways to compute a class, or the shortest?
        robust: of the states with one interface, also that which is cheapest by and large, or only that which is
            cheapest at its best tiles?
        layouts: a state for every layout, or only for one?
        never_last: an axis that is innermost only where there is no other.
        thorough: of the states with one interface also those that are cheapest at any tiles; kernels that go through
            the rows of an argument in turn; and arguments that are copied whole, before they are read.
    """

    scope: Scope
    alternatives: bool
    robust: bool
    layouts: bool
    never_last: AxisId | None = None
    thorough: bool = False


BREADTHS = (
    Breadth(Scope(), alternatives=True, robust=True, layouts=True),
    Breadth(Scope(), alternatives=True, robust=False, layouts=True),
    Breadth(Scope(), alternatives=False, robust=True, layouts=True),
    Breadth(Scope(fusions=2), alternatives=False, robust=False, layouts=True),
    Breadth(Scope(fusions=1), alternatives=False, robust=False, layouts=True),
    Breadth(Scope(fusions=1), alternatives=False, robust=False, layouts=False),
)
"""From thorough to thin: the next for a space that is too wide for elimination."""


def grow(structure: Structure, estimate: Estimate, breadth: Breadth) -> dict[ClassId, Domain]:
    """A domain for every class.

    Raises:
        TooWide: there are far too many states for elimination.
    """
    untied: dict[ClassId, list[State]] = {}
    for c in reversed(structure.classes):
        readers = [s for r in dict.fromkeys(f.root.of for f in structure.hosts[c]) for s in untied[r]]
        hosts = [s for s in readers if c in structure.reads(s.fusion)]
        untied[c] = [s for f in structure.fusions(c) for s in _of_fusion(structure, f, hosts, estimate, breadth)]
        _check_count(untied.values())
    offers: dict[ClassId, _Offers] = {}
    domains: dict[ClassId, Domain] = {}
    for c in structure.classes:
        ordered = {replace(state, order=()): None for state in untied[c]}
        owed = {state: _owed(structure, state, offers) for state in ordered}
        states = [replace(s, ties=ties) for s in untied[c] for ties in owed[replace(s, order=())]]
        _check_count((*domains.values(), states))
        offers[c] = _Offers(structure, states)
        domains[c] = tuple(states) if c in structure.layouts else (None, *states)
    return domains


def _check_count(domains: Iterable[Sequence[State | None]]) -> None:
    states = sum(map(len, domains))
    if states > _MOST_STATES:
        raise TooWide(f"there are at least {states} ways to compute one class or another", expected=f"{_MOST_STATES}")


def written_last(structure: Structure, variant: Variant, order: Order) -> AxisId | None:
    """The axis along which a class's value is contiguous: an output's is given, others suit their writers."""
    layout = structure.layouts.get(variant.of)
    if layout is not None:
        return layout[-1] if layout else None
    return next((a for a in reversed(order) if a in structure.axes(variant.of)), None)


def candidate_orders(structure: Structure, variant: Variant) -> tuple[Order, ...]:
    """Reduced axes innermost, around the innermost output axis, or outermost; with different output axes innermost.

    Of many output axes some are not in the nest, and are whole: reduced axes around two of them only, too. With three,
    what is found so on Zen 3 takes 1.03 to 1.11 of the time of what is found without, and 0.65 in one case of six.
    """
    out = structure.layouts.get(variant.of, structure.axes(variant.of))
    reduced = structure.reduced(variant)
    found: dict[Order, None] = {}
    if reduced and len(out) > _PERMUTED:
        *rows, lane = out
        found |= {(*(a for a in out if a not in (row, lane)), *reduced, row, lane): None for row in rows}
    for innermost in reversed(out if len(out) <= _PERMUTED or variant.of in structure.copies else out[-1:]):
        first = tuple(a for a in out if a != innermost)
        found |= dict.fromkeys(
            ((*first, *reduced, innermost), (*first, innermost, *reduced), (*reduced, *first, innermost))
        )
    return tuple(found) or (reduced,)


def _of_fusion(
    structure: Structure, fusion: Fusion, hosts: list[State], estimate: Estimate, breadth: Breadth
) -> Iterator[State]:
    """The states of one fusion that stand for all of theirs; ``hosts`` are the states that read its class."""
    rows = tuple(product(_nests(structure, fusion, breadth), candidate_orders(structure, fusion.root)))
    if not rows:
        return
    work, share = estimate(fusion, rows)
    index = {row: n for n, row in enumerate(rows)}
    allowed = tuple((nest, order) for nest, order in rows if order[-1:] != (breadth.never_last,))
    groups: dict[Hashable, list[State]] = {}
    for state in _states(structure, fusion, allowed or rows, hosts, breadth):
        shared = max(state.site, structure.shared_depths.get((fusion, state.nest), 0))
        last = written_last(structure, fusion.root, state.order) if breadth.layouts else None
        groups.setdefault((state.nest[:shared], state.site, shared and state.serial, last), []).append(state)
    for group in groups.values():
        at = [index[state.nest, state.order] for state in group]
        serial = np.array([state.serial for state in group])[:, None]
        time = work[at] * np.where(serial, 1.0, share[at])
        yield from (group[n] for n in _cheapest(time, breadth))


def _states(
    structure: Structure, fusion: Fusion, rows: Sequence[Row], hosts: list[State], breadth: Breadth
) -> list[State]:
    """All states of one fusion. A copy that is made at every call is made where it is read, or before as well."""
    staged = list(_staged(structure, fusion, rows, hosts))
    if staged and not breadth.thorough and fusion.root.of in structure.copies - structure.panels:
        return staged
    return [*_materialised(structure, fusion, rows, breadth), *staged]


def _nests(structure: Structure, fusion: Fusion, breadth: Breadth) -> list[Nest]:
    """The nests of ``fusion``, without those that start with a loop that it, or something later, reduces over.

    Under such a loop something is shared only in a kernel that one thread runs. They stay where there are no others,
    and where an argument is streamed.
    """
    nests = structure.nests(fusion)
    if breadth.thorough and structure.in_turn(fusion):
        return list(nests)
    reductions = structure.reduced_above[fusion.root.of].union(structure.reduced(fusion.root))
    kept = [n for n in nests if reductions.isdisjoint(n[:1])]
    return kept if any(kept) else list(nests)


def _cheapest(time: Costs, breadth: Breadth) -> list[int]:
    """The rows kept of some with one interface."""
    best = int(np.argmin(time.min(axis=1)))
    robust = int(np.argmin((time / time.min(axis=0)).mean(axis=1)))
    at_some = np.argmin(time, axis=0).tolist() if breadth.thorough else ()
    return sorted({best, robust, *at_some}) if breadth.robust else [best]


def _materialised(structure: Structure, fusion: Fusion, rows: Iterable[Row], breadth: Breadth) -> list[State]:
    """Kernels of their own; serial ones only if there is no other way, or an argument is streamed."""
    reduced = structure.reduced(fusion.root)
    states = [State(fusion, nest, order, serial=next(iter((*nest, *order)), None) in reduced) for nest, order in rows]
    if breadth.thorough and structure.in_turn(fusion):
        return states
    return [s for s in states if not s.serial] or states


def _staged(structure: Structure, fusion: Fusion, rows: Iterable[Row], hosts: list[State]) -> Iterator[State]:
    c = fusion.root.of
    if c in structure.layouts or structure.meets.get(c, c) is None:
        return
    legal = structure.sites.get(fusion.root, frozenset())
    held = {(s.nest[:site], s.serial) for s in hosts for site in range(1, len(s.nest) + 1)}
    finished = structure.reduced(fusion.root) if c not in structure.statistics else ()
    for nest, order in rows:
        for site in range(1, len(nest) + 1):
            if (nest, site) in legal and not any(a in finished for a in nest[:site]):
                for serial in (False, True):
                    if (nest[:site], serial) in held:
                        yield State(fusion, nest, order, site, serial)


class _Offers:
    """What the states of a class tie a reader to, by the loops that they share."""

    def __init__(self, structure: Structure, states: list[State]) -> None:
        self._found: dict[Nest, dict[Ties, None]] = {}
        for state in (s for s in states if s.site):
            for depth in depths(structure, state):
                self._found.setdefault(state.nest[:depth], {})[brings(structure, state, depth)] = None

    def to(self, reader: State) -> list[tuple[Ties, int]]:
        """What ``reader`` may find, and inside how many of its loops; among others a value in memory."""
        shared = [(reader.nest[:depth], depth) for depth in range(1, len(reader.nest) + 1)]
        return [(FREE, 0), *((ties, depth) for nest, depth in shared for ties in self._found.get(nest, ()))]


def _owed(structure: Structure, state: State, offers: dict[ClassId, _Offers]) -> list[Ties]:
    """Everything that ``state`` may come to owe."""
    owed: list[list[Ties]] = []
    for x in structure.reads(state.fusion):
        found = (left(structure, state, ties, depth) for ties, depth in offers[x].to(state))
        owed.append(list(dict.fromkeys(ties for ties in found if ties is not None)))
    return list(dict.fromkeys(joined(structure, ties) for ties in product(*owed)))
