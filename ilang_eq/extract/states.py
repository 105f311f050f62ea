"""What extraction decides about each class: which node computes it, in which loops, and where its value is put.

A *state* is one decision. Whether two classes' decisions fit depends on these two alone:

  * a class is materialised by a kernel of its own, staged inside the first ``site`` loops of its readers, or inlined
    in the loops of a single one
  * a statistic staged inside a loop that it reduces over is *unfinished* there: what is computed from it stays inside
    its site until reductions that start with the same loop repair it (``lower/online.py``)
  * a kernel whose outermost loop is a reduction's runs on one thread, with all that is staged in it

One rule takes three: readers of a staged value share it only if their loops can be the same ones. They cannot if one
of them reads what another has completed outside these loops.

Invariants of ``State``:
  * the first ``site`` loops of ``nest`` are also those of every reader
  * an inlined state has its reader's nest and order, and the whole nest is its site
  * what is materialised has nothing unfinished
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ilang_eq.extract.structure import Facts, Structure
from ilang_eq.rewrites.space import AxisId, ClassId, Nest, Variant

Order = tuple[AxisId, ...]

_SHARED_ACROSS = 8
"""A value read along paths with more classes than this between them is materialised if it is shared."""


@dataclass(frozen=True, slots=True, order=True)
class Unfinished:
    """``statistic`` is still being reduced inside the first ``depth`` loops of whoever reads it."""

    statistic: Variant
    depth: int

    def starts_at(self, structure: Structure, nest: Nest) -> AxisId:
        """The axis of the loop in ``nest`` before which the statistic starts afresh."""
        return nest[start(structure, self.statistic, nest)]


Waits = frozenset[Unfinished]
"""The unfinished statistics that a value depends on."""

NOTHING: Waits = frozenset()


@dataclass(frozen=True, slots=True)
class State:
    """One way to compute a class.

    Args:
        variant: the node.
        nest: its tile loops.
        order: its element loops, from the outside in.
        site: how many tile loops it is staged under, 0 if it is materialised.
        inlined_in: the reader in whose element loops it runs, if it does.
        serial: does one thread run its kernel?
        waits: what its value waits for.
    """

    variant: Variant
    nest: Nest
    order: Order
    site: int = 0
    inlined_in: ClassId | None = None
    serial: bool = False
    waits: Waits = NOTHING

    @property
    def materialised(self) -> bool:
        """Whether a kernel of its own writes it to memory."""
        return self.site == 0 and self.inlined_in is None

    @property
    def staged(self) -> bool:
        """Whether readers find it in a buffer inside their loops."""
        return self.site > 0 and self.inlined_in is None


def brings(structure: Structure, producer: State) -> Waits:
    """What a reader of ``producer`` has to wait for: what it waits for, and itself if it is read unfinished."""
    reduced = structure.reduced(producer.variant)
    if producer.staged and not set(reduced).isdisjoint(producer.nest[: producer.site]):
        return producer.waits | {Unfinished(producer.variant, producer.site)}
    return producer.waits


def start(structure: Structure, variant: Variant, nest: Nest) -> int:
    """The position in ``nest`` of the first loop that ``variant`` reduces over, or the length of ``nest``."""
    reduced = structure.reduced(variant)
    return next((n for n, axis in enumerate(nest) if axis in reduced), len(nest))


def left_waiting(structure: Structure, consumer: Variant, nest: Nest, brought: Waits) -> Waits | None:
    """What ``consumer`` still waits for, given operands that bring ``brought``; None if that is illegal."""
    left: set[Unfinished] = set()
    reduced = structure.reduced(consumer)
    for wait in brought:
        if not set(reduced).isdisjoint(structure.axes(wait.statistic.of)):
            return None
        if wait.starts_at(structure, nest) not in reduced:
            left.add(wait)
        elif not _repairs(structure, consumer, nest, wait):
            return None
    return frozenset(left)


def _repairs(structure: Structure, consumer: Variant, nest: Nest, wait: Unfinished) -> bool:
    """Whether ``consumer``, which reduces over the loop that ``wait.statistic`` starts at, is put right for it."""
    running = {a for a in nest[: wait.depth] if a in structure.reduced(wait.statistic)}
    return (
        (consumer, wait.statistic.of) in structure.repairs
        and start(structure, consumer, nest) == start(structure, wait.statistic, nest)
        and running.issubset(structure.reduced(consumer))
    )


def fits(structure: Structure, consumer: State | None, producer: State | None, x: ClassId) -> bool:
    """Whether ``consumer`` may go with ``producer``, a state of class ``x`` that some variant of its own class reads.

    None stands for a class that is not computed.
    """
    if consumer is None or x not in structure.reads(consumer.variant):
        return producer is None or consumer is None or producer.inlined_in != consumer.variant.of
    if producer is None:
        return False
    if producer.materialised:
        return True
    if x in structure.viewed(consumer.variant) or producer.serial != consumer.serial:
        return False
    if not _in_place(structure.facts(consumer.variant, producer.variant), consumer, producer):
        return False
    left = left_waiting(structure, consumer.variant, consumer.nest, brings(structure, producer))
    return left is not None and left <= consumer.waits


def _in_place(facts: Facts, consumer: State, producer: State) -> bool:
    """Whether the producer's loops are where the consumer's are."""
    if producer.inlined_in is None:
        return (consumer.nest, producer.site, producer.nest) in facts.staged
    same = (producer.nest, producer.order) == (consumer.nest, consumer.order)
    return same and producer.inlined_in == consumer.variant.of and producer.nest in facts.inlined


@dataclass(frozen=True, slots=True)
class Sharing:
    """A value with several readers, and a class on a path from it to where their paths meet.

    Args:
        value: the class with several readers.
        between: the class on the path.
        beside: a class computed in the loops of ``value``, perhaps, or in those of what ``between`` leads to.
        readers: variants of ``beside`` that read ``value``, if ``between`` leads to ``beside``.
        hosts: readers of ``beside`` that ``between`` leads to, if it does not lead to ``beside``.
    """

    value: ClassId
    between: ClassId
    beside: ClassId | None = None
    readers: frozenset[Variant] = frozenset()
    hosts: frozenset[ClassId] = frozenset()

    def allows(self, value: State | None, between: State | None, beside: State | None) -> bool:
        """Whether a value staged in loops is the same for all of its readers.

        A class that leads back into these loops must be computed in them. One that does not may end them; the loops
        around must then be the same, which is certain if it ends the innermost only.
        """
        if value is None or not value.staged or between is None or between.inlined_in is not None:
            return True
        if self.beside is None:
            return between.site >= max(1, value.site - 1)
        return between.site >= value.site or beside is None or not self._inside(beside, value.site)

    def _inside(self, beside: State, site: int) -> bool:
        """Whether ``beside`` is what ``between`` leads to, or in its loops."""
        if self.readers:
            return beside.variant in self.readers
        return beside.site >= site if beside.inlined_in is None else beside.inlined_in in self.hosts


def sharings(structure: Structure) -> Iterator[Sharing]:
    """Every condition on the sharing of staged values, ``unshareable`` ones apart."""
    above = _above(structure)
    for c, readers in structure.readers.items():
        inside = _between(structure, c, above)
        if len(readers) > 1 and len(inside) <= _SHARED_ACROSS:
            for between in inside:
                yield Sharing(c, between)
                yield from _leading_back(structure, Sharing(c, between), inside, above)


def _leading_back(
    structure: Structure, sharing: Sharing, inside: list[ClassId], above: dict[ClassId, set[ClassId]]
) -> Iterator[Sharing]:
    """The conditions on ``sharing.between`` and one more class."""
    led_to = above[sharing.between]
    for r in structure.readers[sharing.value]:
        if r in led_to:
            reading = frozenset(v for v in structure.variants(r) if sharing.value in structure.reads(v))
            yield replace(sharing, beside=r, readers=reading)
    for q in inside:
        hosts = led_to.intersection(structure.readers[q])
        if q != sharing.between and q not in led_to and hosts:
            yield replace(sharing, beside=q, hosts=frozenset(hosts))


def unshareable(structure: Structure) -> frozenset[ClassId]:
    """The classes with several readers too far apart to share a staged value."""
    above = _above(structure)
    return frozenset(
        c
        for c, readers in structure.readers.items()
        if len(readers) > 1 and len(_between(structure, c, above)) > _SHARED_ACROSS
    )


def _above(structure: Structure) -> dict[ClassId, set[ClassId]]:
    """For each class, those that can be computed from it."""
    above: dict[ClassId, set[ClassId]] = {}
    for c in reversed(structure.classes):
        readers = structure.readers[c]
        above[c] = set(readers).union(*(above[r] for r in readers))
    return above


def _between(structure: Structure, c: ClassId, above: dict[ClassId, set[ClassId]]) -> list[ClassId]:
    """The classes strictly between ``c`` and the first class that every path from it to an output passes."""
    later = [w for w in structure.classes if w in above[c]]
    place = {w: n for n, w in enumerate(later)}
    farthest = -1
    for n, w in enumerate([c, *later]):
        if farthest == n - 1 and n > 0:
            return later[: n - 1]
        if w in structure.layouts:
            break
        farthest = max(farthest, *(place[r] for r in structure.readers[w]))
    return later
