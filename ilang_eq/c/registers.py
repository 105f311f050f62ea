"""Register tiles: accumulators that stay in vector registers through a reduction.

before →  for k: for i' < 6: for j' < 32: out[i+i'][j+j'] += a[i+i'][k] * b[k][j+j']
after  →  tile[6][32] ← 0;  for k: (unrolled) tile[i'][j'] += ...;  out += tile

So a sum that goes block by block is a sum of sums, whose error grows with the blocks, not with all of it; and no tile
waits for what was there. That is asked for at its start, where it is in memory and there is time. A loop that may be
long goes in blocks of its own (``BLOCK``). Where a nest right before sets the target to a number, the tile starts
with that, and is all of it; or in the first iteration of the loops around only, if it is a number that changes nothing.

The innermost loop of such a nest runs over vector lanes. Where the target moves with it, the tile is a copy of the
target. Where it does not (a dot product), every lane sums its own share and a fold adds the shares up; a long
reduction is first cut into steps of ``STRIP`` lanes, which makes several independent accumulators.

At the end of the reduction all of a tile is used once more (``Held``), by nothing: in large functions GCC would store
sums in every step of some tails' loops, for after it, whether what follows stores them under a condition or not.

A tile of several vectors that is short has code for fewer of them, chosen when it runs: 200 columns in tiles of 64 take
13 vectors and not 16. One of more vectors than are unrolled stays in the nearest cache, and its rows stay loops; not
where its lanes are added up, which is quicker row by row. Lanes that are no whole vectors go under a mask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ilang_eq.c.nodes import (
    Fold,
    Full,
    Held,
    Loop,
    Node,
    Registers,
    Room,
    Seldom,
    Tile,
    VectorNest,
    Versions,
    block_name,
)
from ilang_eq.c.stages import worth_stages
from ilang_eq.lang.ops import OPS
from ilang_eq.lower.dependence import REDUCTIONS, innermost, perfect, reductions
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Comment, Constant, Declare, For, Index, Load, Statement
from ilang_eq.lower.lanes import lanes_of, masked_lanes_of
from ilang_eq.lower.rolling import most_vectors
from ilang_eq.lower.walk import code, declared_in, mentions, places, replace_in_body, stride, substituted, updates
from ilang_eq.lower.widths import FEWEST_STEPS, LARGEST_TILE, MOST_VECTORS, WIDTHS, narrower

STRIP = 64
"""Lanes of a stripped reduction: four AVX-512 registers, or eight of AVX2."""
MOST_LANES = 128
"""The most lanes of a reduction that is done in one go."""
LONG = 256
"""The fewest steps of a tile whose rows are asked for. Soft-cap, with 96, takes 1.06 of the time if they are."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A reduction in registers; ``absorbed`` are the positions of earlier statements that it makes superfluous."""

    nodes: tuple[Node, ...]
    absorbed: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Nest:
    """A perfect nest of constant loops inside the reduction."""

    loops: tuple[For, ...]
    body: tuple[Statement, ...]
    lanes: int

    @property
    def large(self) -> bool:
        most = most_vectors(self.body, _reduces(self.loops[-1], self.body))
        return prod(loop.limit or 1 for loop in self.loops) > most * self.lanes


@dataclass(frozen=True, slots=True)
class _Accumulator:
    """One target in registers. ``own`` are the loops that index it; a ``reduced`` one has the lane besides."""

    statement: Accumulate
    own: tuple[For, ...]
    lane: For
    lanes: int
    reduced: bool

    @property
    def name(self) -> str:
        return f"{self.statement.target.buffer}_tile"

    @property
    def indexed(self) -> tuple[For, ...]:
        return (*self.own, self.lane) if self.reduced else self.own

    @property
    def place(self) -> Load:
        return Load(self.name, tuple(Index((loop.variable,)) for loop in self.indexed))


@dataclass(frozen=True, slots=True)
class _Start:
    """A number that a tile starts with; if loops are ``first``, in the first iteration of these alone."""

    value: Constant
    first: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reduction:
    """``chain`` are the loops that the targets do not move with; ``items`` is the body of the last.

    Without a chain, the only item is a nest of one loop, whose lanes are all there is to reduce.
    """

    chain: tuple[For, ...]
    items: tuple[Statement | _Nest, ...]
    accumulators: tuple[_Accumulator, ...]

    @property
    def nests(self) -> tuple[_Nest, ...]:
        return tuple(item for item in self.items if isinstance(item, _Nest))


def register_tile(
    loop: For, before: Sequence[Statement], facts: frozenset[Full], masked: bool, around: tuple[For, ...] = ()
) -> Bound | None:
    """Bind ``loop`` as a reduction in registers, if it is one.

    Args:
        loop: the outermost loop of the reduction.
        before: the statements that run before it in the same block, among them perhaps its initialisation.
        facts: what is known to be full here.
        masked: whether loops that may be short are to be clamped and masked.
        around: the loops that it stands in, from the outside in.
    """
    once = innermost(loop) and full_fact(loop) in facts and (loop.limit or 0) <= MOST_LANES
    reduction = _reduction(strip_mined(loop) if innermost(loop) and not once else loop)
    if reduction is None:
        return None
    short = _short_loops(reduction, facts, masked)
    if short is None:
        return None
    initial = [None if a.reduced else _initialisation(a, before) for a in reduction.accumulators]

    begun = [found and found[1] for found in initial]
    blocks = _blocks(reduction, begun)
    if blocks is not None:
        first = block_name(blocks)
        begun = [known and replace(known, first=(*known.first, first)) for known in begun]

    def within(limits: Mapping[str, int]) -> tuple[Node, ...]:
        narrow = _narrowed(reduction, limits)
        rows = tuple(_limited(loop, limits) for loop in short if not _stripped(loop, reduction))
        main = _main(narrow, facts, frozenset(r.variable for r in rows), len(rows) < len(short), around)
        if blocks is not None:
            main = tuple(replace(node, block=True) if isinstance(node, Loop) else node for node in main)
        return (replace(_with_tiles(narrow, begun, rows, main), blocks=blocks),)

    nodes = within({})
    lane = _short_lane(reduction, short)
    enough = None if lane is None else full_fact(lane)
    if lane is not None and enough is not None and enough not in facts:
        for width in narrower(enough.limit):
            nodes = (Versions((replace(enough, limit=width + 1),), nodes, within({lane.variable: width})),)
    return Bound(nodes, frozenset(found[0] for found in initial if found is not None))


def _blocks(reduction: _Reduction, initial: Sequence[_Start | None]) -> For | None:
    """The loop of ``reduction``, if it is the only one and may have any number of steps.

    Tiles across their target are left whole: what is added to them is gathered lane by lane.
    """
    match reduction.chain:
        case (loop,) if loop.step == 1 and loop.limit is None:
            pairs = list(zip(reduction.accumulators, initial, strict=True))
            begins = all(known is None or known.value == identity(a.statement.op) for a, known in pairs)
            along = all(stride(a.statement.target, a.lane.variable) == "unit" for a, _ in pairs)
            return loop if begins and along else None
        case _:
            return None


def strip_mined(loop: For) -> For:
    """A long innermost reduction in steps of whole vectors; any other loop as it is."""
    into = reductions(loop)
    widths = [w for w in (STRIP, 32, 16, 8, 4) if loop.limit is None or loop.limit % w == 0]
    targets = [u.target for u in updates(loop.body) if u.target.buffer not in declared_in(loop.body)]
    apart = any(stride(place, loop.variable) not in ("none", "unit") for place in places(loop.body))
    if not into or len(targets) != len(into) or not widths or loop.step != 1 or apart or lanes_of(loop, 4) == 1:
        return loop
    return replace(loop, step=widths[0], body=(replace(strip(loop, widths[0]), reduces=True),))


def strip(loop: For, lanes: int) -> For:
    """``lanes`` iterations of ``loop``, from where it stands."""
    lane = f"{loop.variable}_lane"
    body = replace_in_body(loop.body, loop.variable, (loop.variable, lane))
    return For(lane, loop.extent, 1, lanes, (*loop.outer, loop.variable), body)


def full_fact(loop: For) -> Full | None:
    """The fact that ``loop`` reaches its limit; None if it has no limit."""
    if loop.limit is None:
        return None
    return Full(loop.extent, tuple(sorted(loop.outer)), loop.limit)


def _reduction(loop: For) -> _Reduction | None:
    """Recognise loops around constant nests whose only outside effect is to accumulate."""
    private = set(declared_in(loop.body))
    outward = [u for u in updates([loop]) if u.target.buffer not in private]
    names = {u.target.buffer for u in outward}
    touched = [place for place in places([loop]) if place.buffer in names]
    if not outward or len(touched) != len(names):
        return None
    into = [u for u in outward if isinstance(u, Accumulate) and u.op in REDUCTIONS]
    chain, body = _chain(loop, [u.target for u in outward])
    items = [_item(s, private) for s in body]
    if len(into) != len(outward) or (not chain and not innermost(loop)):
        return None
    found = [item for item in items if item is not None]
    nests = [item for item in found if isinstance(item, _Nest)]
    accumulators = [_accumulator(u, nest) for nest in nests for u in nest.body if u in into]
    held = [a for a in accumulators if a is not None]
    if len(found) != len(items) or len(held) != len(into) or (not chain and not all(a.reduced for a in held)):
        return None
    if any(nest.large for nest in nests) and chain and (chain[-1].limit or FEWEST_STEPS) < FEWEST_STEPS:
        return None
    return _Reduction(chain, tuple(found), tuple(held))


def _chain(loop: For, targets: Sequence[Load]) -> tuple[tuple[For, ...], tuple[Statement, ...]]:
    chain: list[For] = []
    body: tuple[Statement, ...] = (loop,)
    while len(inside := code(body)) == 1:
        (only,) = inside
        if not isinstance(only, For) or innermost(only) or any(mentions(t, only.variable) for t in targets):
            break
        chain.append(only)
        body = only.body
    return tuple(chain), body


def _item(statement: Statement, private: set[str]) -> Statement | _Nest | None:
    """A statement of the reduction's body that can stand beside unrolled nests; None for any other."""
    match statement:
        case Comment() | Declare():
            return statement
        case Assign(target) if target.buffer in private and not target.indices:
            return statement
        case For():
            loops, body = perfect(statement)
            limits = [loop.limit for loop in loops if loop.limit is not None and loop.step == 1]
            if len(limits) < len(loops) or any(isinstance(s, For) for s in body):
                return None
            lanes = max(lanes_of(loops[-1], limits[-1]), masked_lanes_of(loops[-1], limits[-1]))
            inside = [u.target for u in updates(body) if isinstance(u, Accumulate) and u.target.buffer in private]
            if any(stride(target, loops[-1].variable) != "unit" for target in inside):
                lanes = 1
            most = MOST_VECTORS * lanes if lanes == 1 or _reduces(loops[-1], body) else LARGEST_TILE
            return _Nest(loops, body, lanes) if prod(limits) <= most else None
        case _:
            return None


def _accumulator(statement: Accumulate, nest: _Nest) -> _Accumulator | None:
    """The tile for one target; None if the nest cannot keep it in vectors."""
    variables = {loop.variable for loop in nest.loops}
    for index in statement.target.indices:
        mine = [v for v in index.variables if v in variables]
        if len(mine) > 1 or (mine and index.divisor != 1):
            return None
    if nest.lanes == 1:
        return None
    own = tuple(loop for loop in nest.loops if mentions(statement.target, loop.variable))
    lane = nest.loops[-1]
    return _Accumulator(statement, own, lane, nest.lanes, stride(statement.target, lane.variable) == "none")


def _stripped(loop: For, reduction: _Reduction) -> bool:
    """Whether ``loop`` is the lane of a stripped reduction: it fills a step of the innermost loop around the nests."""
    if not reduction.chain:
        return False
    around = reduction.chain[-1]
    lanes = {accumulator.lane for accumulator in reduction.accumulators if accumulator.reduced}
    return loop in lanes and loop.outer[-1:] == (around.variable,) and around.step == loop.limit


def _short_loops(reduction: _Reduction, facts: frozenset[Full], masked: bool) -> tuple[For, ...] | None:
    """The loops of the nests that may be short; None if one of them would spoil the result."""
    short: dict[For, None] = {}
    for nest in reduction.nests:
        mine = set(declared_in(nest.body))
        written = [u.target for u in updates(nest.body) if u.target.buffer not in mine]
        for loop in nest.loops:
            uneven = loop == nest.loops[-1] and bool((loop.limit or 0) % nest.lanes)
            if full_fact(loop) in facts and not uneven:
                continue
            indexing = all(mentions(target, loop.variable) for target in written)
            folded = bool(reduction.chain) and loop == nest.loops[-1] and _reduces(loop, nest.body)
            # rows of a tile are folded together, in the end
            few = (loop.limit or 0) <= MOST_LANES
            rows = folded and few and all(outer.limit is not None and outer.step == 1 for outer in reduction.chain)
            masks = rows or ((masked or uneven) and (indexing or folded))
            if not _stripped(loop, reduction) and not (masks and loop.outer):
                return None
            short[loop] = None
    ends = {(loop.variable, loop.extent, loop.limit, loop.outer) for loop in short}
    if len(ends) > len({loop.variable for loop in short}):
        # nests that call different loops alike could not share the name of the end
        return None
    stripped = any(_stripped(loop, reduction) for loop in short)
    if stripped and not all(a.reduced and _stripped(a.lane, reduction) for a in reduction.accumulators):
        return None
    return tuple(short)


def _reduces(loop: For, body: Sequence[Statement]) -> bool:
    """Whether all that ``body`` does is to accumulate over the innermost ``loop``."""
    own = set(declared_in(body))
    return not any(
        mentions(update.target, loop.variable) for update in updates(body) if update.target.buffer not in own
    )


def _main(
    reduction: _Reduction, facts: frozenset[Full], rows: frozenset[str], stripped: bool, loops: tuple[For, ...]
) -> tuple[Node, ...]:
    """The reduction itself, its accumulators redirected to their tiles."""
    if not reduction.chain:
        return _items(reduction, rows)
    *outer, around = reduction.chain
    known = [full_fact(loop) in facts for loop in reduction.chain]
    body = _items(reduction, rows | _uneven(reduction))
    nodes: tuple[Node, ...]
    if not stripped or known[-1]:
        nodes = (Loop(around, body, known[-1], around=(*loops, *outer)),)
    else:
        lanes = {loop.variable for nest in reduction.nests for loop in nest.loops if _stripped(loop, reduction)}
        nodes = (Loop(around, body, False, "main", (*loops, *outer)),)
        if around.step == STRIP and any(worth_stages(nest.body) for nest in reduction.nests):
            # what is called for a vector alone takes twice as long as for four of them
            around = replace(around, step=STRIP // 2)
            reduction = _narrowed(reduction, dict.fromkeys(lanes, STRIP // 2))
            nodes = (*nodes, Loop(around, _items(reduction, rows), False, "half"))
        nodes = (*nodes, Loop(around, _items(reduction, rows | lanes), False, "rest", (*loops, *outer)))
    for loop, full in zip(reversed(outer), reversed(known[:-1]), strict=True):
        nodes = (Loop(loop, nodes, full),)
    return nodes


def _uneven(reduction: _Reduction) -> frozenset[str]:
    """The lanes that fill the steps of the loop around them, but no vectors: even then some of the last are missing."""
    lasts = [(nest.loops[-1], nest.lanes) for nest in reduction.nests]
    return frozenset(last.variable for last, n in lasts if (last.limit or 0) % n and _stripped(last, reduction))


def _items(reduction: _Reduction, partial: frozenset[str]) -> tuple[Node, ...]:
    tiles = {a.statement: replace(a.statement, target=a.place) for a in reduction.accumulators}
    nodes: list[Node] = []
    for item in reduction.items:
        if isinstance(item, _Nest):
            body = tuple(tiles.get(s, s) if isinstance(s, Accumulate) else s for s in item.body)
            own = partial & {loop.variable for loop in item.loops}
            reduced = _reduces(item.loops[-1], item.body)
            nodes.append(VectorNest(item.loops, item.lanes, body, own, reduced))
        else:
            assert not isinstance(item, For), "a loop inside the reduction is a nest"
            nodes.append(item)
    return tuple(nodes)


def _with_tiles(
    reduction: _Reduction, initial: Sequence[_Start | None], rows: tuple[For, ...], main: tuple[Node, ...]
) -> Registers:
    """``main`` between the start and the end of its tiles; ``initial`` is what else would be there, if it is known."""
    partial = frozenset(row.variable for row in rows)
    tiles, start, store = [], list[Node](), list[Node]()
    for a, known in zip(reduction.accumulators, initial, strict=True):
        own = partial & {loop.variable for loop in a.own}
        target, op = a.statement.target, a.statement.op
        *rows_of_it, width = (loop.limit or 0 for loop in a.indexed)
        tiles.append(Tile(a.name, (*rows_of_it, -(-width // a.lanes) * a.lanes), target.buffer))
        alone = known is not None and not known.first
        value = known.value if alone and known is not None else identity(op)
        start.append(VectorNest(a.indexed, a.lanes, (Assign(a.place, value),), own))
        if a.reduced:
            store.append(Fold(a.own, target, op, a.place, a.lane, a.lanes, own))
            continue
        whole = VectorNest(a.own, a.lanes, (Assign(target, a.place),), own)
        if alone:
            store.append(whole)
            continue
        steps = reduction.chain[-1].limit
        if stride(target, a.lane.variable) == "unit" and (steps is None or steps >= LONG):
            start.append(Room(a.own[:-1], substituted(target, a.lane.variable, ()), width))
        added = replace(whole, body=(Assign(a.place, Apply(op, (target, a.place))),))
        store += [added if known is None else Seldom(known.first, (), (), (added,)), whole]
    small = bool(reduction.chain) and not any(nest.large for nest in reduction.nests)
    held = [Held(a.indexed, a.place, a.lanes) for a in reduction.accumulators] if small else []
    return Registers(tuple(tiles), rows, (*start, *main, *held, *store))


def _short_lane(reduction: _Reduction, short: Sequence[For]) -> For | None:
    """The one loop over lanes of all nests, if it may be short; None if it is worth no code of its own."""
    lanes = {nest.loops[-1].variable for nest in reduction.nests if nest.lanes == WIDTHS[0]}
    found = [loop for loop in short if loop.variable in lanes and not _stripped(loop, reduction)]
    alone = len(lanes) == 1 and all(nest.lanes == WIDTHS[0] for nest in reduction.nests)
    return found[0] if alone and found else None


def _narrowed(reduction: _Reduction, limits: Mapping[str, int]) -> _Reduction:
    """``reduction`` with other limits of loops in its nests, by their variables."""

    def loops(old: tuple[For, ...]) -> tuple[For, ...]:
        return tuple(_limited(loop, limits) for loop in old)

    items = (replace(item, loops=loops(item.loops)) if isinstance(item, _Nest) else item for item in reduction.items)
    held = (replace(a, own=loops(a.own), lane=_limited(a.lane, limits)) for a in reduction.accumulators)
    return replace(reduction, items=tuple(items), accumulators=tuple(held))


def _limited(loop: For, limits: Mapping[str, int]) -> For:
    return replace(loop, limit=limits[loop.variable]) if loop.variable in limits else loop


def identity(op: str) -> Constant:
    """What a reduction by ``op`` starts with."""
    found = OPS[op].identity
    assert found is not None, f"{op} does not reduce"
    return Constant(found)


def _initialisation(accumulator: _Accumulator, before: Sequence[Statement]) -> tuple[int, _Start] | None:
    """The position of the nest that sets all of the target to a number just before, and what it does."""
    target = accumulator.statement.target
    for position in reversed(range(len(before))):
        statement = before[position]
        if not any(place.buffer == target.buffer for place in places([statement])):
            continue
        if not isinstance(statement, For) or statement.without:
            return None
        loops, body = perfect(statement)
        match code(body):
            case (Assign(place, Constant() as value),) if _renamed(place, loops, accumulator.own) == target:
                alone = not statement.first or value == identity(accumulator.statement.op)
                return (position, _Start(value, statement.first)) if alone else None
            case _:
                return None
    return None


def _renamed(place: Load, loops: Sequence[For], to: Sequence[For]) -> Load | None:
    """``place`` with ``loops`` called as the loops of ``to`` that cover the same; None if they do not pair up."""
    names: dict[str, str] = {}
    for loop in loops:
        same = (loop.extent, loop.step, loop.limit, loop.outer)
        pair = [t for t in to if (t.extent, t.step, t.limit, t.outer) == same and t.variable not in names.values()]
        if not pair:
            return None
        names[loop.variable] = pair[0].variable
    if len(names) != len(to):
        return None
    indices = (Index(tuple(names.get(v, v) for v in index.variables), index.divisor) for index in place.indices)
    return Load(place.buffer, tuple(indices))
