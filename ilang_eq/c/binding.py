"""Binds the loops of a kernel to threads, registers and vectors. It never reorders: the schedule has the last word.

* Outermost parallel loops, as far as they are perfectly nested, become tasks.
* A block whose constant nests are all decided by variables in scope gets two versions: one where every tile is
  full, with constant trip counts, and one for the tail; a register tile's tail has code for each number of vectors.
* A reduction around constant nests keeps its accumulators in registers (``registers.py``).
* An innermost loop that calls functions which are faster on several vectors goes in strips of them (``stages.py``).
* A loop that adds rows to a row adds several at a time (``jam.py``).
* Two loops that make columns of rows do so block by block, in registers (``turned.py``).
* Any other innermost loop with independent iterations is left to the compiler's vectoriser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal as Choice

from ilang_eq.c.jam import jam
from ilang_eq.c.nodes import (
    Fold,
    Full,
    Loop,
    Node,
    Parallel,
    Registers,
    Seldom,
    Simd,
    Strips,
    Tile,
    VectorNest,
    Versions,
)
from ilang_eq.c.operands import with_operands
from ilang_eq.c.registers import MOST_LANES, STRIP, full_fact, identity, register_tile, strip
from ilang_eq.c.stages import worth_stages
from ilang_eq.c.turned import turned, turning
from ilang_eq.lower.dependence import REDUCTIONS, independent, innermost, reductions
from ilang_eq.lower.ir import Accumulate, Assign, Declare, For, Index, Kernel, Load, Statement
from ilang_eq.lower.lanes import lanes_of
from ilang_eq.lower.walk import code, mentions, places, stride, updates, walk
from ilang_eq.lower.widths import WIDTHS

LONGEST_TILE = 1024
"""The most steps of a loop that may be part of a tile; a longer one is a loop, however constant."""


@dataclass(frozen=True, slots=True)
class _Context:
    """Where a block stands: the loops around it, what is full, and whether its version is settled.

    ``later`` loops come after it in the nearest block where any does, in which it stands in the loops ``beyond``.
    """

    loops: tuple[For, ...] = ()
    facts: frozenset[Full] = frozenset()
    settled: bool = False
    tail: bool = False
    later: tuple[For, ...] = ()
    beyond: tuple[For, ...] = ()

    @property
    def scope(self) -> frozenset[str]:
        return frozenset(loop.variable for loop in self.loops)

    def inside(self, *loops: For) -> _Context:
        return replace(self, loops=(*self.loops, *loops), beyond=(*self.beyond, *loops))

    def before(self, statements: Sequence[Statement]) -> _Context:
        """In front of ``statements`` of the same block."""
        loops = tuple(s for s in statements if isinstance(s, For))
        return replace(self, later=(*loops, *(() if self.beyond else self.later)), beyond=()) if loops else self


def bind(kernel: Kernel) -> tuple[Node, ...]:
    """The kernel's body, bound."""
    return _outermost(kernel.body, _Context())


def _outermost(statements: Sequence[Statement], context: _Context) -> tuple[Node, ...]:
    """A block outside all tasks: its parallel loops become tasks, those in its serial loops likewise."""
    nodes: list[Node] = []
    serial: list[Statement] = []
    for statement in statements:
        if not isinstance(statement, For) or not _has_tasks(statement):
            serial.append(statement)
            continue
        nodes += _block(serial, context)
        serial = []
        if statement.parallel:
            nodes.append(_parallel(statement, context))
        else:
            nodes.append(Loop(statement, _outermost(statement.body, context.inside(statement)), False))
    return (*nodes, *_block(serial, context))


def _has_tasks(loop: For) -> bool:
    return any(isinstance(s, For) and s.parallel for s in walk([loop]))


def _parallel(loop: For, context: _Context) -> Parallel:
    """Tasks for threads: this loop, and those perfectly inside it that are independent and not the innermost.

    Nor rows that become columns, of which several go together.
    """
    if innermost(loop):
        return Parallel((loop,), (_innermost(loop, context),))
    loops = [loop]
    while len(inside := code(loops[-1].body)) == 1:
        (only,) = inside
        bounded = isinstance(only, For) and {outer.variable for outer in loops} & set(only.outer)
        if not isinstance(only, For) or bounded or innermost(only) or not independent(only) or turning(only):
            break
        loops.append(only)
    return Parallel(tuple(loops), _block(loops[-1].body, context.inside(*loops)))


def _block(statements: Sequence[Statement], context: _Context) -> tuple[Node, ...]:
    """A block: in two versions where that settles its tiles."""
    if context.settled:
        return _run(statements, context)
    nodes: list[Node] = []
    runs = list(_runs(statements, context.scope))
    for position, (run, facts) in enumerate(runs, 1):
        here = context.before([s for later, _ in runs[position:] for s in later])
        if not facts:
            nodes += _run(run, here)
            continue
        rest = [s for s in run if not isinstance(s, Declare)]
        full = replace(here, facts=context.facts | facts, settled=True)
        tail = replace(here, settled=True, tail=True)
        nodes += [s for s in run if isinstance(s, Declare)]
        nodes.append(Versions(tuple(sorted(facts)), _run(rest, full), _run(code(rest), tail)))
    return tuple(nodes)


def _runs(statements: Sequence[Statement], scope: frozenset[str]) -> Iterator[tuple[list[Statement], frozenset[Full]]]:
    """Cut a block into runs, each with the facts that settle its tiles; none where versions gain nothing."""
    run: list[Statement] = []
    facts: frozenset[Full] = frozenset()
    for statement in statements:
        needs = _needs(statement, scope) if isinstance(statement, For) else facts
        if (isinstance(statement, For) and not needs) or (needs and not facts):
            yield run, facts
            run, facts = [], frozenset()
        run.append(statement)
        facts |= needs
        if isinstance(statement, For) and not needs:
            yield run, facts
            run = []
    yield run, facts


def _needs(loop: For, scope: frozenset[str]) -> frozenset[Full]:
    """What makes every tile in ``loop`` full, if variables in ``scope`` decide it; else nothing."""
    facts: set[Full] = set()
    for tile in _tiles(loop):
        fact = full_fact(tile)
        if fact is not None and set(fact.outer) <= scope:
            facts.add(fact)
        elif not (innermost(tile) and _reduces(tile)):
            # a lane of a reduction is decided inside it, and strip-mined there
            return frozenset()
    return frozenset(facts)


def _tiles(loop: For) -> tuple[For, ...]:
    """The loops of constant nests in ``loop``, less those that a reduction runs through and may leave short."""
    inside = [s for s in loop.body if isinstance(s, For)]
    below = tuple(tile for inner in inside for tile in _tiles(inner))
    nest = [s for s in walk([loop]) if isinstance(s, For)]
    constant = all(s.limit is not None and s.limit <= LONGEST_TILE and s.step == 1 for s in nest)
    return (loop, *below) if constant and not (inside and _reduces(loop)) else below


def _reduces(loop: For) -> bool:
    """Whether nothing that ``loop`` writes moves with it."""
    return not any(mentions(update.target, loop.variable) for update in updates(loop.body))


def _run(statements: Sequence[Statement], context: _Context) -> tuple[Node, ...]:
    """Statements of one block, one after another."""
    bound: list[tuple[Node, ...]] = []
    for position, statement in enumerate(statements):
        if not isinstance(statement, For):
            bound.append((statement,))
            continue
        here = context.before(statements[position + 1 :])
        if statement.seldom:
            always = replace(statement, first=(), without=())
            bound.append((Seldom(statement.first, statement.without, (_loop(always, here),)),))
            continue
        tile = register_tile(statement, statements[:position], context.facts, context.tail, context.loops)
        if tile is None:
            bound.append((_loop(statement, here),))
            continue
        for absorbed in tile.absorbed:
            bound[absorbed] = ()
        bound.append(with_operands(tile.nodes, here.later, here.beyond))
    return tuple(node for nodes in bound for node in nodes)


def _loop(loop: For, context: _Context) -> Node:
    """A loop that is no register tile."""
    if not innermost(loop):
        in_blocks = turned(loop, context.facts)
        if in_blocks is not None:
            return in_blocks
        body = _block(loop.body, context.inside(loop))
        within = context.loops[-1] if context.loops else None
        return jam(loop, body) or Loop(loop, body, full_fact(loop) in context.facts, within=within)
    node = _innermost(loop, context)
    if not isinstance(node, Simd):
        return node
    return _short_copy(node) if context.tail and _copies(node) else _in_vectors(node)


def _innermost(loop: For, context: _Context) -> Loop | Simd:
    full, into = full_fact(loop) in context.facts, reductions(loop)
    return Loop(loop, _leaves(loop.body), full) if into is None or loop.step != 1 else Simd(loop, into, full)


def _copies(simd: Simd) -> bool:
    """Whether a loop that may be short does nothing but copy neighbours into a tile of whole vectors."""
    loop, (target, *more) = simd.source, [*updates(simd.source.body), None]
    if simd.full or (loop.limit or LONGEST_TILE) > MOST_LANES or lanes_of(loop, loop.limit or 1) != WIDTHS[0]:
        return False
    plain = isinstance(target, Assign) and more == [None] and isinstance(target.value, Load)
    return plain and all(stride(place, loop.variable) == "unit" for place in places(loop.body))


def _short_copy(simd: Simd) -> Registers:
    """A copy in whole vectors, zero beyond the end: denormals that memory may hold would slow down readers."""
    loop = simd.source
    nest = VectorNest((loop,), WIDTHS[0], loop.body, frozenset({loop.variable}))
    return Registers((), (loop,), (nest,))


def _in_vectors(simd: Simd) -> Node:
    """A loop that calls functions of several vectors as a nest, or in strips of them; any other as it is."""
    loop, limit = simd.source, simd.source.limit
    if not worth_stages(loop.body) or lanes_of(loop, STRIP) != WIDTHS[0] or not _is_near(simd):
        return simd
    if limit is not None and limit <= (MOST_LANES if simd.full else WIDTHS[0]):
        fits = simd.full and not simd.reductions and limit % WIDTHS[0] == 0 and limit > WIDTHS[0]
        return VectorNest((loop,), WIDTHS[0], loop.body) if fits else simd
    # what may be short has no more in it
    longest = STRIP if limit is None or limit > STRIP else STRIP // 2
    inner = strip(loop, longest)
    tiles = {r.target: Load(f"{r.target.buffer}_tile", (Index((inner.variable,)),)) for r in simd.reductions}

    def strips_of(lanes: int, part: Choice["main", "half", "rest"]) -> Loop:
        inner = strip(loop, lanes)
        body = tuple(_into_tiles(s, tiles) for s in inner.body)
        short = frozenset({inner.variable} if part == "rest" else ())
        nest = VectorNest((inner,), WIDTHS[0], body, short, bool(tiles) and part == "rest")
        return Loop(replace(loop, step=lanes, body=(inner,)), (nest,), simd.full, part)

    half = longest // 2
    strips = Strips(strips_of(longest, "main"), strips_of(half, "half"), strips_of(half, "rest"), simd)
    if not tiles:
        return strips
    # the tiles cost more than they gain where there is no whole strip
    some = Full(loop.extent, tuple(sorted(loop.outer)), longest)
    return Versions((some,), (_folding(simd.reductions, tiles, inner, strips),), (simd,))


def _is_near(simd: Simd) -> bool:
    """Whether vectors find all that they accumulate side by side; and what they read, where they reduce it.

    Register tiles may accumulate anywhere, but here there are none for rows; the compiler gathers as well. It also has
    the only vectors of truth values.
    """
    body = simd.source.body
    if any(isinstance(u, Accumulate) and u.op not in REDUCTIONS for u in updates(body)):
        return False
    found = places(body) if simd.reductions else [u.target for u in updates(body) if isinstance(u, Accumulate)]
    return all(stride(place, simd.source.variable) in ("none", "unit") for place in found)


def _into_tiles(statement: Statement, tiles: Mapping[Load, Load]) -> Statement:
    """``statement``, reducing into the tile of its target, if that has one."""
    match statement:
        case Accumulate(target) if target in tiles:
            return replace(statement, target=tiles[target])
        case _:
            return statement


def _folding(into: Sequence[Accumulate], tiles: Mapping[Load, Load], lanes: For, strips: Strips) -> Registers:
    """``strips`` that reduce ``into`` their ``tiles`` beside what else they do, and then the tiles' lanes."""
    start = [VectorNest((lanes,), WIDTHS[0], (Assign(tiles[r.target], identity(r.op)),)) for r in into]
    fold = [Fold((), r.target, r.op, tiles[r.target], lanes, WIDTHS[0], frozenset()) for r in into]
    held = tuple(Tile(place.buffer, (lanes.limit or 0,), target.buffer) for target, place in tiles.items())
    return Registers(held, (), (*start, strips, *fold))


def _leaves(body: Sequence[Statement]) -> tuple[Node, ...]:
    return tuple(s for s in body if not isinstance(s, For))
