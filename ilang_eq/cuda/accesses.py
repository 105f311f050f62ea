"""Who touches what: every place of a bound region, and how the thread that touches an element follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ilang_eq.cuda.contractions import PAIR
from ilang_eq.cuda.nodes import DIMS, Block, Combine, Contract, Copy, Dim, Leaf, Node, Part, Sweep, part_of
from ilang_eq.lower.ir import Accumulate, Assign, Declare, For, Load
from ilang_eq.lower.walk import loads


@dataclass(frozen=True, slots=True)
class Owner:
    """Along one direction, thread (position in ``part`` / width) % threads touches it, by the index ``dim``."""

    dim: int
    part: Part
    rest: frozenset[str]
    width: int = 1


@dataclass(frozen=True, slots=True)
class Slot:
    """Each thread along the direction has a buffer of its own."""


@dataclass(frozen=True, slots=True)
class Everyone:
    """All threads along the direction do the same."""


@dataclass(frozen=True, slots=True)
class First:
    """Only the first thread along the direction does it."""


@dataclass(frozen=True, slots=True)
class Anyone:
    """Some thread along the direction, which the index does not tell."""


Who = Owner | Slot | Everyone | First | Anyone


@dataclass(frozen=True, slots=True)
class Access:
    """A place, read or written, by ``who`` along x and y."""

    place: Load
    written: bool
    who: tuple[Who, Who]

    def same_thread(self, other: Access) -> bool:
        """Whether only one thread can touch an element both ways."""
        pairs = zip(self.who, other.who, strict=True)
        return all(mine == theirs and isinstance(mine, Owner | Slot | First) for mine, theirs in pairs)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a node stands: the sweeps around it, and how many of them are around each local's declaration."""

    path: tuple[Sweep, ...] = ()
    declared: Mapping[str, int] | None = None

    def into(self, sweep: Sweep) -> Scope:
        """Inside ``sweep``."""
        return Scope((*self.path, sweep), self.declared)

    def after(self, node: Node) -> Scope:
        """Behind ``node``."""
        match node:
            case Declare(name):
                return Scope(self.path, {**(self.declared or {}), name: len(self.path)})
            case _:
                return self

    def depth(self, buffer: str) -> int:
        """How many sweeps are around the declaration of ``buffer``; none, if it is no local."""
        return (self.declared or {}).get(buffer, 0)

    def slots(self, buffer: str) -> tuple[Dim, ...]:
        """The directions along which each thread has a ``buffer`` of its own."""
        around = {sweep.dim for sweep in self.path[: self.depth(buffer)]}
        return tuple(dim for dim in DIMS if dim in around)

    def who(self, leaf: Leaf, place: Load, block: Block, first: bool) -> tuple[Who, Who]:
        """Who touches ``place`` of ``leaf`` here; of threads that would all do the same, the first, if ``first``."""
        if isinstance(leaf, Copy):
            x, y = (Slot() if block.along(dim) == 1 else Anyone() for dim in DIMS)
        elif isinstance(leaf, Contract):
            x, y = _of_contract(leaf, place)
        else:
            x, y = (self._along(place, dim, block, first) for dim in DIMS)
        return x, y

    def _along(self, place: Load, dim: Dim, block: Block, first: bool) -> Who:
        if block.along(dim) == 1 or dim in self.slots(place.buffer):
            return Slot()
        sweep = next((s for s in self.path[self.depth(place.buffer) :] if s.dim == dim), None)
        if sweep is None:
            return First() if first else Everyone()
        return owner_of(place, sweep) or Anyone()


def _of_contract(leaf: Contract, place: Load) -> tuple[Who, Who]:
    """Who has an element of a contract: of sums, whom rows and columns go to; of factors, anyone in general."""
    if place == leaf.target:
        return _owner(place, leaf.columns, PAIR), _owner(place, leaf.rows, 1)
    if place == leaf.left and leaf.handed:
        return _owner(place, leaf.depth, PAIR), _owner(place, leaf.rows, 1)
    return Anyone(), Anyone()


def _owner(place: Load, loop: For, width: int) -> Owner:
    part = part_of(loop)
    assert part is not None, "an element loop runs over a part"
    (dim,) = (d for d, index in enumerate(place.indices) if loop.variable in index.variables)
    return Owner(dim, part, frozenset(), width)


def owner_of(place: Load, sweep: Sweep) -> Owner | None:
    """Whose the element is among the threads that share ``sweep``; None if its index does not tell."""
    v, part = sweep.source.variable, part_of(sweep.source)
    found = [(d, index) for d, index in enumerate(place.indices) if v in index.variables]
    if len(found) != 1 or part is None:
        return None
    dim, index = found[0]
    rest = frozenset(index.variables) - {v}
    plain = index.divisor == 1 and len(index.variables) == len(rest) + 1 and rest in (frozenset(), set(part.outer))
    return Owner(dim, part, rest, sweep.width) if plain else None


def leaves(nodes: Sequence[Node], scope: Scope) -> Iterator[tuple[Leaf, Scope]]:
    """Every leaf with where it stands."""
    for node in nodes:
        match node:
            case Sweep():
                yield from leaves(node.body, scope.into(node))
            case Assign() | Accumulate() | Combine() | Copy() | Contract():
                yield node, scope
            case _:
                scope = scope.after(node)


def touched(leaf: Leaf) -> Iterator[tuple[Load, bool]]:
    """The places of a leaf, and whether they are written. What is accumulated into is read as well."""
    match leaf:
        case Assign(target, value):
            yield target, True
            yield from ((load, False) for load in loads(value))
        case Accumulate(target, _, value):
            yield target, True
            yield target, False
            yield from ((load, False) for load in loads(value))
        case Combine(target, _, share, _):
            yield target, True
            yield target, False
            yield share, False
        case Copy(_, Assign(target, value)):
            yield target, True
            yield from ((load, False) for load in loads(value))
        case Contract(target, left, right):
            yield target, True
            yield from ((place, False) for place in (target, left, right))
            if leaf.prepared is not None:
                yield leaf.prepared, True
                yield leaf.prepared, False
