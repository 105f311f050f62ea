"""The nodes of a space as extraction takes them: operands looked through, pointwise expressions fused with readers.

Numbers, arguments and views take no decision: an *operand* is looked through them down to what is in memory. Pointwise
expressions that a reader can inline are made part of it: a *fusion* is a variant with everything that it inlines.
A value that several readers inline is computed by each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations
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


@dataclass(frozen=True, slots=True, order=True)
class Fusion:
    """A variant with the pointwise variants that run inside its element loops, at most one of each class.

    Its hash is computed once: most tables are looked up by fusion.
    """

    root: Variant
    inlined: tuple[Variant, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.root, self.inlined)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def members(self) -> tuple[Variant, ...]:
        """All variants, readers before what they inline."""
        return (self.root, *self.inlined)


@dataclass(frozen=True, slots=True)
class Scope:
    """How much of a space is looked at.

    Args:
        fusions: the most fusions of each variant.
    """

    fusions: int = 12


@dataclass(frozen=True)
class Fusions:
    """A space's nodes, as far as ``scope`` goes, without the fusions that are ``excluded`` and ``dropped`` variants.

    What is dropped reads nothing; of what is excluded, the variants may still be in other fusions. ``sizes`` are of the
    axes, where they are known.
    """

    space: Space
    scope: Scope = Scope()
    excluded: frozenset[Fusion] = frozenset()
    dropped: frozenset[Variant] = frozenset()
    sizes: Mapping[AxisId, int] = field(default_factory=dict)

    @cached_property
    def layouts(self) -> dict[ClassId, tuple[AxisId, ...]]:
        """The classes returned, each in the layout in which it is first returned."""
        found: dict[ClassId, tuple[AxisId, ...]] = {}
        for c, axes in self.space.outputs:
            if not isinstance(c, Input):
                found.setdefault(c, axes)
        return found

    @cached_property
    def inputs(self) -> int:
        """How many arguments the component has."""
        read = [n.input for found in self.space.classes.values() for n in found.nodes if isinstance(n, Read)]
        return 1 + max([*read, *(wire.index for wire, _ in self.space.outputs if isinstance(wire, Input))], default=-1)

    def node(self, variant: Variant) -> Apply | Reduce:
        """What ``variant`` computes."""
        node = self.space.classes[variant.of].nodes[variant.node]
        assert isinstance(node, Apply | Reduce), f"{node} computes nothing"
        return node

    def axes(self, c: ClassId) -> tuple[AxisId, ...]:
        """The axes of a class's value."""
        return self.space.classes[c].axes

    def reduced(self, variant: Variant) -> tuple[AxisId, ...]:
        """The axes that ``variant`` reduces."""
        node = self.node(variant)
        return node.axes if isinstance(node, Reduce) else ()

    def loops(self, variant: Variant) -> tuple[AxisId, ...]:
        """The axes that ``variant`` runs over."""
        return self.axes(variant.of) + self.reduced(variant)

    @cached_property
    def _variants(self) -> dict[ClassId, tuple[Variant, ...]]:
        found = {
            c: tuple(Variant(c, n) for n, node in enumerate(eclass.nodes) if isinstance(node, Apply | Reduce))
            for c, eclass in self.space.classes.items()
        }
        return {c: tuple(v for v in variants if v not in self.dropped) for c, variants in found.items()}

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

    def computed(self, variant: Variant) -> list[ClassId]:
        """The classes that a variant reads, each once, views of them included."""
        return list(dict.fromkeys(x.of for x in self.operands(variant) if isinstance(x, Computed)))

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
    def repairs(self) -> dict[tuple[Variant, ClassId], str]:
        """The kind of every repair, by accumulator and statistic."""
        return {(repair.accumulator, repair.statistic): repair.kind for repair in self.space.repairs}

    @cached_property
    def statistics(self) -> frozenset[ClassId]:
        """The classes that some accumulator may read unfinished."""
        return frozenset(statistic for _, statistic in self.repairs)

    @cached_property
    def _everything(self) -> tuple[ClassId, ...]:
        """The classes that the outputs reach, operands before readers."""
        return producers_first(self.layouts, lambda c: [x for v in self._variants[c] for x in self.computed(v)])

    @cached_property
    def _readers(self) -> dict[ClassId, tuple[Variant, ...]]:
        variants = [v for c in self._everything for v in self._variants[c]]
        return {c: tuple(v for v in variants if c in self.computed(v)) for c in self._everything}

    @cached_property
    def _always_inlined(self) -> frozenset[ClassId]:
        """The classes whose readers can all inline them, and exclude each other: a buffer would gain nothing."""
        return frozenset(
            c
            for c in self._everything
            if c not in self.layouts
            and c not in self._read_together
            and all(self.facts(host, v).inlined for host in self._readers[c] for v in self._variants[c])
        )

    @cached_property
    def _read_together(self) -> frozenset[ClassId]:
        readers = [(v.of, tuple(self.computed(v))) for c in self._everything for v in self._variants[c]]
        return read_together(self._everything, readers, tuple(self.layouts))

    @cached_property
    def _later(self) -> dict[ClassId, frozenset[ClassId]]:
        """Each class with all that can be computed from it."""
        found: dict[ClassId, frozenset[ClassId]] = {}
        for c in reversed(self._everything):
            found[c] = frozenset((c,)).union(*(found[v.of] for v in self._readers[c]))
        return found

    def _gains(self, root: ClassId, x: ClassId) -> bool:
        """Whether ``root`` may gain by computing ``x`` for itself although another class reads it too.

        So it may if it has to come after that other reader, or if the two never come together in one kernel.
        """
        others = {v.of for v in self._readers[x]} - {root}
        return x not in self._read_together or any(
            root in self._later[r] or self._later[r].isdisjoint(self._later[root]) for r in others
        )

    @cached_property
    def _fusions(self) -> dict[ClassId, tuple[Fusion, ...]]:
        return {}

    def fusions(self, c: ClassId) -> tuple[Fusion, ...]:
        """The ways to compute a class."""
        if c not in self._fusions:
            grown = (f for v in self._variants[c] for f in self._grown(v))
            self._fusions[c] = tuple(f for f in grown if f not in self.excluded)
        return self._fusions[c]

    def _grown(self, root: Variant) -> list[Fusion]:
        """The fusions of ``root``: first that which inlines the least, then the most, and so on inwards."""
        found: list[Fusion] = []
        stack: list[tuple[Fusion, frozenset[ClassId]]] = [(Fusion(root), frozenset())]
        while stack and len(found) < self.scope.fusions:
            fusion, left = stack.pop(0 if len(found) % 2 == 0 else -1)
            undecided = [x for x in self.reads(fusion) if x not in left]
            if not undecided:
                found.append(fusion)
                continue
            x = undecided[0]
            if x not in self._always_inlined or x in self.viewed(fusion):
                stack.append((fusion, left | {x}))
            if x in self.viewed(fusion) or not self._gains(root.of, x):
                continue
            for variant in reversed(self._variants[x]):
                grown = Fusion(root, (*fusion.inlined, variant))
                if self.nests(grown):
                    stack.append((grown, left))
        return found

    @cached_property
    def _nests(self) -> dict[Fusion, tuple[Nest, ...]]:
        return {}

    def nests(self, fusion: Fusion) -> tuple[Nest, ...]:
        """The nests in which every member can follow those that read it."""
        if fusion not in self._nests:
            legal = [
                self.facts(reader, x).inlined
                for x in fusion.inlined
                for reader in fusion.members
                if x.of in self.computed(reader)
            ]
            self._nests[fusion] = tuple(n for n in self.space.nests[fusion.root] if all(n in held for held in legal))
        return self._nests[fusion]

    @cached_property
    def _sources(self) -> dict[Fusion, tuple[Operand, ...]]:
        return {}

    def sources(self, fusion: Fusion) -> tuple[Operand, ...]:
        """What a fusion reads from memory, each once."""
        if fusion not in self._sources:
            inside = {v.of for v in fusion.inlined}
            found = dict.fromkeys(x for v in fusion.members for x in self.operands(v))
            self._sources[fusion] = tuple(x for x in found if not isinstance(x, Computed) or x.of not in inside)
        return self._sources[fusion]

    @cached_property
    def _reads(self) -> dict[Fusion, tuple[ClassId, ...]]:
        return {}

    def reads(self, fusion: Fusion) -> tuple[ClassId, ...]:
        """The classes that a fusion reads, each once."""
        if fusion not in self._reads:
            found = (x.of for x in self.sources(fusion) if isinstance(x, Computed))
            self._reads[fusion] = tuple(dict.fromkeys(found))
        return self._reads[fusion]

    def viewed(self, fusion: Fusion) -> frozenset[ClassId]:
        """The classes that a fusion reads under other names: views are of what is materialised."""
        return frozenset(x.of for x in self.sources(fusion) if isinstance(x, Computed) and x.renamed is not None)


def producers_first(roots: Iterable[ClassId], below: Callable[[ClassId], list[ClassId]]) -> tuple[ClassId, ...]:
    """The classes that ``roots`` reach, producers before readers."""
    found: dict[ClassId, None] = {}
    stack = [(c, False) for c in reversed(list(roots))]
    while stack:
        c, ready = stack.pop()
        if ready:
            found[c] = None
        elif c not in found:
            stack.append((c, True))
            stack.extend((x, False) for x in reversed(below(c)) if x not in found)
    return tuple(found)


_Reader = tuple[ClassId, tuple[ClassId, ...]]
"""A class, and what one way to compute it reads."""


def read_together(
    classes: tuple[ClassId, ...], readers: list[_Reader], returned: tuple[ClassId, ...]
) -> frozenset[ClassId]:
    """The classes that two others may read in one choice; readers that exclude each other do not count."""
    reached: dict[ClassId, frozenset[ClassId]] = {}
    reads: dict[ClassId, set[ClassId]] = {c: set() for c in classes}
    for c, read in readers:
        reads[c].update(read)
    for c in classes:
        reached[c] = frozenset((c,)).union(*(reached[x] for x in reads[c]))
    forks = [read for _, read in readers] + [returned]

    def together(a: _Reader, b: _Reader) -> bool:
        return (
            any(a[0] in reached[x] for x in b[1])
            or any(b[0] in reached[x] for x in a[1])
            or any(a[0] in reached[x] and b[0] in reached[y] for fork in forks for x, y in permutations(fork, 2))
        )

    hosts = {c: [reader for reader in readers if c in reader[1]] for c in classes}
    return frozenset(c for c in classes if any(a[0] != b[0] and together(a, b) for a, b in combinations(hosts[c], 2)))


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
