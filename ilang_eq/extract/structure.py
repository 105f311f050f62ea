"""The relations between the classes of a space that extraction works with: who reads whom, what may be staged where.

Numbers, arguments and views take no decision: an *operand* is looked through them down to what is in memory.

Invariants of ``Structure``:
  * ``classes`` holds every class that the outputs can reach and something computes, operands before readers
  * ``operands``, ``readers`` and ``reads`` speak of these classes only
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

from ilang_eq.lang.graph import Input
from ilang_eq.rewrites.space import Apply, AxisId, ClassId, Nest, Number, Read, Reduce, Space, Variant, View


@dataclass(frozen=True, slots=True)
class Argument:
    """An operand that is argument ``input`` of the component, read at ``axes``, one per dimension."""

    input: int
    axes: tuple[AxisId, ...]


@dataclass(frozen=True, slots=True)
class Computed:
    """An operand that class ``of`` computes; ``renamed`` gives its axes other names where it is viewed."""

    of: ClassId
    renamed: tuple[tuple[AxisId, AxisId], ...] | None = None

    def names(self, axes: Iterable[AxisId]) -> tuple[AxisId, ...]:
        """Axes of the class by the reader's names."""
        names = dict(self.renamed or ())
        return tuple(names.get(a, a) for a in axes)


Operand = Argument | Number | Computed


@dataclass(frozen=True, slots=True)
class Facts:
    """What the space says about one consumer variant and one producer variant.

    Args:
        staged: (consumer's nest, site, producer's nest), each legal.
        inlined: the nests under which the producer may follow the consumer's loops.
    """

    staged: frozenset[tuple[Nest, int, Nest]] = frozenset()
    inlined: frozenset[Nest] = frozenset()


_NOTHING = Facts()


@dataclass(frozen=True)
class Structure:
    """A space, as extraction sees it."""

    space: Space

    @cached_property
    def classes(self) -> tuple[ClassId, ...]:
        """The classes to decide about."""
        found: dict[ClassId, None] = {}
        stack = [(c, False) for c in reversed(self.layouts)]
        while stack:
            c, ready = stack.pop()
            if ready:
                found[c] = None
            elif c not in found:
                stack.append((c, True))
                stack.extend((x, False) for x in reversed(self._below(c)) if x not in found)
        return tuple(found)

    @cached_property
    def layouts(self) -> dict[ClassId, tuple[AxisId, ...]]:
        """The classes returned, each in the layout in which it is first returned."""
        found: dict[ClassId, tuple[AxisId, ...]] = {}
        for c, axes in self.space.outputs:
            if not isinstance(c, Input):
                found.setdefault(c, axes)
        return found

    @cached_property
    def _variants(self) -> dict[ClassId, tuple[Variant, ...]]:
        return {
            c: tuple(Variant(c, n) for n, node in enumerate(found.nodes) if isinstance(node, Apply | Reduce))
            for c, found in self.space.classes.items()
        }

    def variants(self, c: ClassId) -> tuple[Variant, ...]:
        """The nodes of a class that compute something."""
        return self._variants[c]

    def node(self, variant: Variant) -> Apply | Reduce:
        """What ``variant`` computes."""
        node = self.space.classes[variant.of].nodes[variant.node]
        assert isinstance(node, Apply | Reduce), f"{node} computes nothing"
        return node

    def reduced(self, variant: Variant) -> tuple[AxisId, ...]:
        """The axes that ``variant`` reduces."""
        node = self.node(variant)
        return node.axes if isinstance(node, Reduce) else ()

    def axes(self, c: ClassId) -> tuple[AxisId, ...]:
        """The axes of a class's value."""
        return self.space.classes[c].axes

    def loops(self, variant: Variant) -> tuple[AxisId, ...]:
        """The axes that ``variant`` runs over."""
        return self.axes(variant.of) + self.reduced(variant)

    @cached_property
    def _operands(self) -> dict[Variant, tuple[Operand, ...]]:
        found: dict[Variant, tuple[Operand, ...]] = {}
        for variants in self._variants.values():
            for variant in variants:
                node = self.node(variant)
                read = (node.operand,) if isinstance(node, Reduce) else node.operands
                found[variant] = tuple(self._operand(c) for c in read)
        return found

    def operands(self, variant: Variant) -> tuple[Operand, ...]:
        """Where each operand of ``variant`` comes from."""
        return self._operands[variant]

    def _operand(self, c: ClassId) -> Operand:
        source = next((n for n in self.space.classes[c].nodes if isinstance(n, Read | Number | View)), None)
        match source:
            case None:
                return Computed(c)
            case Read(index, axes):
                return Argument(index, axes)
            case Number():
                return source
            case View(of, dims, axes):
                return _viewed(self._operand(of), dict(zip(dims, axes, strict=True)))
            case other:
                assert_never(other)

    def reads(self, variant: Variant) -> tuple[ClassId, ...]:
        """The classes that ``variant`` reads, each once."""
        return tuple(dict.fromkeys(x.of for x in self.operands(variant) if isinstance(x, Computed)))

    def viewed(self, variant: Variant) -> frozenset[ClassId]:
        """The classes that ``variant`` reads under other names."""
        return frozenset(x.of for x in self.operands(variant) if isinstance(x, Computed) and x.renamed is not None)

    def _below(self, c: ClassId) -> list[ClassId]:
        return [x for variant in self.variants(c) for x in self.reads(variant)]

    @cached_property
    def readers(self) -> dict[ClassId, tuple[ClassId, ...]]:
        """The classes some variant of which reads a class."""
        found: dict[ClassId, dict[ClassId, None]] = {c: {} for c in self.classes}
        for c in self.classes:
            for x in self._below(c):
                found[x][c] = None
        return {c: tuple(read) for c, read in found.items()}

    @cached_property
    def edges(self) -> tuple[tuple[ClassId, ClassId], ...]:
        """Every (reader, class read), each once."""
        return tuple((r, c) for c in self.classes for r in self.readers[c])

    @cached_property
    def _facts(self) -> dict[tuple[Variant, Variant], Facts]:
        staged: dict[tuple[Variant, Variant], list[tuple[Nest, int, Nest]]] = {}
        inlined: dict[tuple[Variant, Variant], list[Nest]] = {}
        for fact in self.space.stagings:
            pair = (fact.consumer, fact.producer)
            if fact.inline:
                inlined.setdefault(pair, []).append(fact.nest)
            else:
                staged.setdefault(pair, []).append((fact.nest, fact.site, fact.producer_nest))
        return {
            pair: Facts(frozenset(staged.get(pair, ())), frozenset(inlined.get(pair, ())))
            for pair in {**staged, **inlined}
        }

    def facts(self, consumer: Variant, producer: Variant) -> Facts:
        """What may be staged of ``producer`` in ``consumer``."""
        return self._facts.get((consumer, producer), _NOTHING)

    @cached_property
    def sites(self) -> dict[Variant, frozenset[tuple[Nest, int]]]:
        """The (own nest, site) at which a variant can be staged in some reader."""
        found: dict[Variant, set[tuple[Nest, int]]] = {}
        for (_, producer), facts in self._facts.items():
            found.setdefault(producer, set()).update((nest, site) for _, site, nest in facts.staged)
        return {variant: frozenset(sites) for variant, sites in found.items()}

    @cached_property
    def shared_depths(self) -> Mapping[tuple[Variant, Nest], int]:
        """How many loops of a variant's nest anything can be staged in, in it or in what it inlines."""
        found: dict[tuple[Variant, Nest], int] = {}
        for (consumer, _), facts in self._facts.items():
            for nest, site, _ in facts.staged:
                found[consumer, nest] = max(site, found.get((consumer, nest), 0))
        for c in self.classes:
            for consumer in self.variants(c):
                for producer in (p for x in self.reads(consumer) for p in self.variants(x)):
                    for nest in self.facts(consumer, producer).inlined:
                        deeper = max(found.get((consumer, nest), 0), found.get((producer, nest), 0))
                        found[consumer, nest] = deeper
        return found

    @cached_property
    def repairs(self) -> frozenset[tuple[Variant, ClassId]]:
        """(accumulator, statistic) of every repair."""
        return frozenset((repair.accumulator, repair.statistic) for repair in self.space.repairs)


def _viewed(operand: Operand, names: Mapping[AxisId, AxisId]) -> Operand:
    """``operand`` under other axis names."""
    match operand:
        case Argument(index, axes):
            return Argument(index, tuple(names[a] for a in axes))
        case Number():
            return operand
        case Computed(of, renamed):
            return Computed(of, tuple(names.items() if renamed is None else ((a, names[b]) for a, b in renamed)))
        case other:
            assert_never(other)
