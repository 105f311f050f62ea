"""The relations between the classes that extraction decides about: who reads whom, what may be staged where.

Invariants of ``Structure``:
  * ``classes`` are those that a fusion reads or the component returns, operands before readers; the rest is inlined
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ilang_eq.extract.footprint import ELEMENT_BYTES, PAGE
from ilang_eq.extract.fusions import Argument, Fusion, Fusions, producers_first, read_together
from ilang_eq.lang.expr import Expr
from ilang_eq.rewrites.decode import constant_classes, is_copy
from ilang_eq.rewrites.space import AxisId, ClassId, Nest, Read, Variant

_SMALL = 8
"""Classes of a space that is small."""

_SHARED_ACROSS = 8
"""A value read along paths with more classes than this between them is materialised if it is shared."""


@dataclass(frozen=True)
class Structure(Fusions):
    """A space, as extraction sees it."""

    @cached_property
    def classes(self) -> tuple[ClassId, ...]:
        """The classes to decide about."""
        return producers_first(self.layouts, lambda c: [x for f in self.fusions(c) for x in self.reads(f)])

    @cached_property
    def small(self) -> bool:
        """Whether there is room to look at more: at more tiles, and with and without packing, for the full model."""
        return len(self.classes) <= _SMALL

    @cached_property
    def places(self) -> dict[ClassId, int]:
        """The position of every class in ``classes``."""
        return {c: n for n, c in enumerate(self.classes)}

    @cached_property
    def ahead(self) -> frozenset[ClassId]:
        """The classes that kernels of their own can compute once, before any call: nothing they depend on varies."""
        return constant_classes(self.space) - self.layouts.keys()

    @cached_property
    def batch(self) -> frozenset[AxisId]:
        """The axes that all arguments have: no two of their iterations share anything."""
        nodes = (node for found in self.space.classes.values() for node in found.nodes)
        reads = [frozenset(node.axes) for node in nodes if isinstance(node, Read) and node.axes]
        return frozenset[AxisId].intersection(*reads) if len(reads) > 1 else frozenset()

    @cached_property
    def copies(self) -> frozenset[ClassId]:
        """Packed arguments."""
        return frozenset(c for c in self.classes if is_copy(self.space, c)) - self.layouts.keys()

    @cached_property
    def panels(self) -> frozenset[ClassId]:
        """Packed constants."""
        return self.copies & self.ahead

    def in_turn(self, fusion: Fusion) -> bool:
        """Whether it may be worth while to go through the rows of an argument in turn, and reduce across them."""
        return self._streams(fusion) or self._returns(fusion)

    def _returns(self, fusion: Fusion) -> bool:
        """Whether it reduces across the rows of an argument that something it reads is computed from, row by row.

        Then each row is still in a cache when it is needed again: Xᵀ·(Σ X·w) of 16384×512 takes 0.62 of the time.
        """
        reduced = set(self.reduced(fusion.root))
        return any(
            isinstance(x, Argument) and x.input in self._inputs[c] and not reduced.isdisjoint(self.axes(c))
            for x in self.sources(fusion)
            for c in self.reads(fusion)
        )

    @cached_property
    def _inputs(self) -> dict[ClassId, frozenset[int]]:
        """The arguments that each class may be computed from, copies aside."""
        found: dict[ClassId, frozenset[int]] = {}
        for c in self.classes:
            fusions = () if c in self.copies else self.fusions(c)
            own = (x.input for f in fusions for x in self.sources(f) if isinstance(x, Argument))
            found[c] = frozenset(own).union(*(found[x] for f in fusions for x in self.reads(f)))
        return found

    def _streams(self, fusion: Fusion) -> bool:
        """Whether it reduces across the rows of an argument that it reads once, each of a page or more.

        Row by row memory is read at the speed of one long row, where tiles of columns begin a page anew for each row:
        4096² floats take 3.7 ms instead of 6.9 on Zen 3. Shorter rows come back to accumulators that are still on
        their way to the cache: 1.5 times as long for rows of 256 floats, as long for 1024.
        """
        reduced = self.reduced(fusion.root)
        loops = {axis for axis in self.loops(fusion.root) if self.sizes.get(axis) != 1}
        arguments = (x.axes for x in self.sources(fusion) if isinstance(x, Argument) and x.axes)
        return any(
            loops.issubset(axes) and axes[-1] not in reduced and self.sizes.get(axes[-1], 0) * ELEMENT_BYTES >= PAGE
            for axes in arguments
        )

    @cached_property
    def hosts(self) -> dict[ClassId, tuple[Fusion, ...]]:
        """The fusions that read a class."""
        found: dict[ClassId, list[Fusion]] = {c: [] for c in self.classes}
        for fusion in (f for c in self.classes for f in self.fusions(c)):
            for x in self.reads(fusion):
                found[x].append(fusion)
        return {c: tuple(fusions) for c, fusions in found.items()}

    @cached_property
    def edges(self) -> tuple[tuple[ClassId, ClassId], ...]:
        """Every (reader, class read), each once."""
        return tuple((r, c) for c in self.classes for r in dict.fromkeys(f.root.of for f in self.hosts[c]))

    def may_stage(self, host: Fusion, x: ClassId, nest: Nest, site: int, producer: Fusion, theirs: Nest) -> bool:
        """Whether ``producer``, of class ``x``, may be computed at ``site`` for all of ``host`` that reads it."""
        if (host, x, producer) not in self._staged:
            readers = [v for v in host.members if x in self.computed(v)]
            self._staged[host, x, producer] = {self.facts(reader, producer.root).staged for reader in readers}
        return all((nest, site, theirs) in staged for staged in self._staged[host, x, producer])

    @cached_property
    def _staged(self) -> dict[tuple[Fusion, ClassId, Fusion], set[frozenset[tuple[Nest, int, Nest]]]]:
        """What ``may_stage`` has found of each reader: asked for many states of few fusions."""
        return {}

    @cached_property
    def readings(self) -> dict[Hashable, int]:
        """What ``additive.py`` has found of pairs of states, which the models of one space mostly share."""
        return {}

    @cached_property
    def written(self) -> dict[Hashable, Expr]:
        """What ``assemble.py`` has written of variants, which the schedules of one space mostly share."""
        return {}

    @cached_property
    def sites(self) -> dict[Variant, frozenset[tuple[Nest, int]]]:
        """The (own nest, site) at which a variant can be staged in some reader."""
        found: dict[Variant, set[tuple[Nest, int]]] = {}
        for (_, producer), facts in self._facts.items():
            found.setdefault(producer, set()).update((nest, site) for _, site, nest in facts.staged)
        return {variant: frozenset(sites) for variant, sites in found.items()}

    @cached_property
    def shared_depths(self) -> Mapping[tuple[Fusion, Nest], int]:
        """How many loops of a fusion's nest anything can be staged in."""
        found: dict[tuple[Fusion, Nest], int] = {}
        for x, hosts in self.hosts.items():
            for host in hosts:
                pairs = [(v, p.root) for v in host.members for p in self.fusions(x) if x in self.computed(v)]
                for nest, site, _ in (fact for pair in dict.fromkeys(pairs) for fact in self.facts(*pair).staged):
                    found[host, nest] = max(site, found.get((host, nest), 0))
        return found

    @cached_property
    def meets(self) -> dict[ClassId, ClassId | None]:
        """For each class that several read at once: the first class on every path from it to an output.

        None if there is none, or only after so many classes that sharing it is not worth a thought.
        """
        readers = [(f.root.of, self.reads(f)) for c in self.classes for f in self.fusions(c)]
        return {c: self._meet(c) for c in sorted(read_together(self.classes, readers, tuple(self.layouts)))}

    def _meet(self, c: ClassId) -> ClassId | None:
        order = self.places
        reached = {c}
        farthest = order[c]
        for w in self.classes[order[c] :]:
            if w not in reached:
                continue
            if w != c and farthest == order[w]:
                return w if len(reached) <= _SHARED_ACROSS + 2 else None
            if w in self.layouts:
                return None
            readers = {f.root.of for f in self.hosts[w]}
            reached |= readers
            farthest = max(farthest, *(order[r] for r in readers))
        return None

    @cached_property
    def above(self) -> dict[ClassId, tuple[Fusion, ...]]:
        """For each class, the fusions that may compute something from it."""
        found: dict[ClassId, dict[Fusion, None]] = {}
        for c in reversed(self.classes):
            found[c] = dict.fromkeys(self.hosts[c])
            for host in self.hosts[c]:
                found[c] |= found[host.root.of]
        return {c: tuple(fusions) for c, fusions in found.items()}

    @cached_property
    def axes_above(self) -> dict[ClassId, frozenset[AxisId]]:
        """The axes of everything that is computed from a class."""
        return {c: frozenset(a for f in fusions for a in self.loops(f.root)) for c, fusions in self.above.items()}

    @cached_property
    def reduced_above(self) -> dict[ClassId, frozenset[AxisId]]:
        """The axes that something computed from a class reduces."""
        return {c: frozenset(a for f in fusions for a in self.reduced(f.root)) for c, fusions in self.above.items()}
