"""What extraction decides about each class: which fusion computes it, in which loops, and where its value is put.

A *state* is one decision. Whether two neighbouring classes' states fit depends on these two alone:

  * a class is materialised by a kernel of its own, or staged inside the first ``site`` loops of its readers
  * a statistic staged inside a loop that it reduces over is read there unfinished; what is computed from it stays in
    its site until reductions that start with the same loop repair it (``lower/online.py``). Or it is read outside
    that loop, finished
  * a kernel whose outermost loop is a reduction's runs on one thread, with all that is staged in it
  * a staged value with several readers is computed once, so the loops that it is in must be the same for all of them.
    Hence no kernel ends between the value and where its readers' paths meet; and what waits for a loop to end
    has no such loop itself. (Stricter than need be where the second loop would share nothing with the first.)

Invariants of ``State``:
  * the first ``site`` loops of ``nest`` are also those of every reader
  * what is materialised waits for nothing and keeps no kernel open
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ilang_eq.extract.fusions import Fusion
from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import AxisId, ClassId, Nest, Variant

Order = tuple[AxisId, ...]


@dataclass(frozen=True, slots=True, order=True)
class Unfinished:
    """``statistic`` is still being reduced inside the first ``depth`` loops of whoever reads it."""

    statistic: Variant
    depth: int

    def starts_at(self, structure: Structure, nest: Nest) -> AxisId | None:
        """The axis of the loop in ``nest`` before which the statistic starts afresh."""
        return next((axis for axis in nest if axis in structure.reduced(self.statistic)), None)


@dataclass(frozen=True, slots=True, order=True)
class Ended:
    """A loop over ``axis``, inside the first ``depth`` loops, has run to its end."""

    depth: int
    axis: AxisId


@dataclass(frozen=True, slots=True)
class Ties:
    """What a value owes to the kernel it is computed in.

    Args:
        waits: the unfinished statistics that it depends on.
        ended: the loops that it comes after.
        open_until: the class in whose kernel it has to be, because something shared leads to both.
    """

    waits: frozenset[Unfinished] = frozenset()
    ended: frozenset[Ended] = frozenset()
    open_until: ClassId | None = None


FREE = Ties()


@dataclass(frozen=True, slots=True)
class State:
    """One way to compute a class.

    Args:
        fusion: the nodes.
        nest: their tile loops.
        order: their element loops, from the outside in.
        site: how many tile loops it is staged under, 0 if it is materialised.
        serial: does one thread run its kernel?
        ties: what it owes to its kernel.
    """

    fusion: Fusion
    nest: Nest
    order: Order
    site: int = 0
    serial: bool = False
    ties: Ties = FREE

    @property
    def root(self) -> Variant:
        """The variant that computes the class's value."""
        return self.fusion.root


def depths(structure: Structure, producer: State) -> tuple[int, ...]:
    """The sites at which a staged value can be read: its own, and for an unfinished one where it is finished."""
    begin = start(structure, producer.root, producer.nest)
    return (producer.site, begin) if 0 < begin < producer.site else (producer.site,)


def start(structure: Structure, variant: Variant, nest: Nest) -> int:
    """The position in ``nest`` of the first loop that ``variant`` reduces over, or the length of ``nest``."""
    reduced = structure.reduced(variant)
    return next((n for n, axis in enumerate(nest) if axis in reduced), len(nest))


def brings(structure: Structure, producer: State, depth: int) -> Ties:
    """What reading a staged ``producer`` inside the first ``depth`` loops ties the reader to."""
    waits = producer.ties.waits
    if start(structure, producer.root, producer.nest) < depth:
        waits |= {Unfinished(producer.root, depth)}
    ended = frozenset(e for e in producer.ties.ended if e.depth <= depth)
    if len(producer.nest) > depth:
        ended |= {Ended(depth, producer.nest[depth])}
    meet = structure.meets.get(producer.root.of)
    return Ties(waits, ended, _later(structure, (producer.ties.open_until, meet)))


def _later(structure: Structure, classes: Iterable[ClassId | None]) -> ClassId | None:
    """The last of ``classes`` in the order of computation."""
    return max((c for c in classes if c is not None), key=structure.places.__getitem__, default=None)


def joined(structure: Structure, ties: Iterable[Ties]) -> Ties:
    """All of ``ties`` at once."""
    found = list(ties)
    return Ties(
        frozenset().union(*(t.waits for t in found)),
        frozenset().union(*(t.ended for t in found)),
        _later(structure, (t.open_until for t in found)),
    )


def left(structure: Structure, reader: State, brought: Ties, depth: int) -> Ties | None:
    """What ``reader`` owes for an operand, read inside the first ``depth`` loops, that brings ``brought``.

    None if the reader cannot have that operand.
    """
    waits = _still_waiting(structure, reader, brought.waits, depth)
    if waits is None or any(reader.nest[e.depth : e.depth + 1] == (e.axis,) for e in brought.ended):
        return None
    above = structure.axes_above[reader.root.of]
    ended = frozenset(e for e in brought.ended if e.depth <= reader.site and e.axis in above)
    until = None if brought.open_until == reader.root.of else brought.open_until
    if until is not None and reader.site < max(1, depth - 1):
        return None
    return Ties(waits, ended, until)


def _still_waiting(
    structure: Structure, reader: State, waits: frozenset[Unfinished], depth: int
) -> frozenset[Unfinished] | None:
    """The waits that ``reader`` does not end; None if it can neither end nor pass on one of them."""
    reduced = structure.reduced(reader.root)
    remaining: set[Unfinished] = set()
    for wait in waits:
        if wait.depth > depth or not set(reduced).isdisjoint(structure.axes(wait.statistic.of)):
            return None
        if wait.starts_at(structure, reader.nest) in reduced:
            if not _repairs(structure, reader, wait):
                return None
        elif reader.site < wait.depth:
            return None
        else:
            remaining.add(wait)
    return frozenset(remaining)


def _repairs(structure: Structure, reader: State, wait: Unfinished) -> bool:
    """Whether ``reader``, which reduces over the loop that ``wait.statistic`` starts at, is put right for it."""
    running = {a for a in reader.nest[: wait.depth] if a in structure.reduced(wait.statistic)}
    return (
        (reader.root, wait.statistic.of) in structure.repairs
        and start(structure, reader.root, reader.nest) == start(structure, wait.statistic, reader.nest)
        and running.issubset(structure.reduced(reader.root))
    )


def read_at(structure: Structure, reader: State, producer: State | None, x: ClassId) -> int | None:
    """The site at which ``reader`` reads class ``x``, computed as ``producer``: 0 in memory, None if that cannot be."""
    if producer is None:
        return None
    if producer.site == 0:
        return 0
    if x in structure.viewed(reader.fusion) or producer.serial != reader.serial:
        return None
    for depth in depths(structure, producer):
        if structure.may_stage(reader.fusion, x, reader.nest, depth, producer.fusion, producer.nest):
            ties = left(structure, reader, brings(structure, producer, depth), depth)
            if ties is not None and within(structure, ties, reader.ties):
                return depth
    return None


def within(structure: Structure, ties: Ties, held: Ties) -> bool:
    """Whether ``held`` accounts for all of ``ties``."""
    latest = _later(structure, (ties.open_until, held.open_until))
    return ties.waits <= held.waits and ties.ended <= held.ended and latest == held.open_until
