"""Binds a region to blocks and threads. It never reorders: the schedule has the last word. ``BINDING.md`` says how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ilang_eq.cuda.accesses import Scope, leaves
from ilang_eq.cuda.accumulators import with_accumulators
from ilang_eq.cuda.contractions import check_contract, contraction, same_sum, sharing
from ilang_eq.cuda.directions import (
    WIDEST,
    Directions,
    block_of,
    copy_directions,
    directions,
    staged_copy,
    widest,
    widths,
)
from ilang_eq.cuda.nodes import (
    DIMS,
    REGISTER_FLOATS,
    SWIZZLED,
    WARP,
    Block,
    Combine,
    Contract,
    Copy,
    Dim,
    Launch,
    Node,
    Part,
    Sweep,
    part_of,
)
from ilang_eq.cuda.places import moved
from ilang_eq.cuda.regions import Region
from ilang_eq.cuda.walks import nested
from ilang_eq.lang.ops import OPS
from ilang_eq.lower.dependence import REDUCTIONS, shared
from ilang_eq.lower.ir import (
    Accumulate,
    Assign,
    Buffer,
    Comment,
    Constant,
    Declare,
    For,
    Index,
    Load,
    Program,
    Statement,
)
from ilang_eq.lower.walk import loads, mentions, places, stride, updates, walk


def bind(region: Region, program: Program, parts: int = 0) -> Launch:
    """``region`` as a launch: who runs which loops. Where data lives is for ``storage.py`` to say.

    Tensor cores take the products that fit them, of factors as so many ``parts``; with 0, none.
    """
    region, accumulators = with_accumulators(region, program)
    in_memory = frozenset(b.name for b in program.buffers if b.role != "local")
    shared_out = sharing(region.body, in_memory, parts) if parts else None
    found = directions(region.body, in_memory, {} if shared_out is None else shared_out.directions)
    block = block_of(found) if shared_out is None else shared_out.block
    runs = widths(region.body, found, block, in_memory)
    contracts: frozenset[Contract] = frozenset()
    if shared_out is not None:
        runs |= shared_out.widths
        contracts = shared_out.contracts
    binder = _Binder(found, block, runs, in_memory, contracts, [*accumulators], {})
    body = binder.block(region.body, frozenset(), {})
    return Launch(region.name, region.grid, _in_warp_tiles(block, body), body, tuple(binder.made), binder.shares)


def _in_warp_tiles(block: Block, body: Sequence[Node]) -> Block:
    """``block`` with warps of 8 by 4 threads, if threads have runs along both directions of a sum's tile.

    Then a warp reads as few words of one factor as of the other. Not where threads along x combine, which is best done
    within a warp.
    """
    found = list(leaves(body, Scope()))
    if block.x % WARP_TILE or block.y % (WARP // WARP_TILE) or block.across < WARP:
        return block
    if any(isinstance(leaf, Combine) and leaf.dim == "x" for leaf, _ in found):
        return block
    wide = [
        {sweep.dim for sweep in scope.path if sweep.dim is not None and sweep.width == WIDEST}
        for leaf, scope in found
        if isinstance(leaf, Accumulate)
    ]
    return replace(block, across=WARP_TILE) if {"x", "y"} in wide else block


WARP_TILE = 8
"""Threads of a warp along x where both directions of a tile have runs."""


@dataclass(slots=True)
class _Binder:
    """``made`` collects the buffers that the binding adds, ``shares`` those that threads have each of their own."""

    directions: Directions
    threads: Block
    widths: Mapping[Part, int]
    in_memory: frozenset[str]
    contracts: frozenset[Contract]
    made: list[Buffer]
    shares: dict[str, Dim]

    def block(self, body: Sequence[Statement], taken: frozenset[Dim], copies: dict[str, Dim]) -> tuple[Node, ...]:
        """Statements of one block, inside loops along the directions ``taken``."""
        nodes: list[Node] = []
        for statement in body:
            if isinstance(statement, For):
                nodes += self._loop(statement, taken, copies)
            else:
                nodes.append(statement)
        return tuple(nodes)

    def _loop(self, loop: For, taken: frozenset[Dim], copies: dict[str, Dim]) -> tuple[Node, ...]:
        if not taken and not copies and self.contracts and (contract := self._contract(loop)) is not None:
            return contract
        if not taken and not copies and (tile := self._tile(loop)) is not None:
            return tile
        copies = copies or self._copy(loop, taken)
        dim = copies.get(loop.variable) if copies else self._direction(loop)
        if dim is None or dim in taken or self.threads.along(dim) == 1 or not self._may(loop, dim, taken):
            return (Sweep(loop, None, self.block(loop.body, taken, copies)),)
        reduced = [s for s in updates(loop.body) if s.target.buffer in shared(loop)]
        if not reduced:
            return (Sweep(loop, dim, self.block(loop.body, taken.union([dim]), copies), self._width(loop, copies)),)
        return self._in_shares(loop, dim, [s for s in reduced if isinstance(s, Accumulate)], taken)

    def _contract(self, loop: For) -> tuple[Node, ...] | None:
        """What the tensor cores take of the nest that ``loop`` heads, with what is said of it."""
        found = contraction(loop, self.in_memory)
        if found is None:
            return None
        chosen = [one for one in self.contracts if same_sum(one, found)]
        if not chosen:
            return None
        check_contract(chosen[0], self.threads)
        return (*(s for s in walk(loop.body) if isinstance(s, Comment)), self._with_tiles(chosen[0]))

    def _with_tiles(self, contract: Contract) -> Contract:
        """``contract`` with a place for what is prepared for a group, if anything is."""
        if not contract.grouped or contract.tiles == 0:
            return contract
        name = f"{contract.right.buffer}_{'turned' if contract.turned else 'rest'}"
        made = Buffer(name, (contract.tiles, contract.columns.limit or 1, SWIZZLED), "local")
        if made not in self.made:
            self.made.append(made)
        columns, depth = (Index((loop.variable,)) for loop in (contract.columns, contract.depth))
        return replace(contract, prepared=Load(name, (Index(()), columns, depth)))

    def _direction(self, loop: For) -> Dim | None:
        part = part_of(loop)
        return None if part is None else self.directions.get(part)

    def _width(self, loop: For, copies: Mapping[str, Dim]) -> int:
        part = part_of(loop)
        return 1 if part is None or copies else self.widths.get(part, 1)

    def _tile(self, loop: For) -> tuple[Node, ...] | None:
        """A copy of a constant tile that all threads share out in one line, unless its loops have directions anyway."""
        found = staged_copy(loop, self.in_memory)
        if found is None or self.threads.threads == 1:
            return None
        loops, update = found
        usual = [self._direction(inner) for inner in loops]
        if None not in usual and len(set(usual)) == len(usual):
            return None
        near = [inner for inner in loops if any(stride(load, inner.variable) == "unit" for load in loads(update.value))]
        variables = [v for index in update.target.indices for v in index.variables]
        plain = all(inner.step == 1 and inner.limit is not None for inner in loops)
        apart = all(variables.count(inner.variable) == 1 for inner in loops)
        if len(near) != 1 or not plain or not apart or any(index.divisor != 1 for index in update.target.indices):
            return None
        said = tuple(s for inner in loops for s in inner.body if isinstance(s, Comment))
        ordered = (*(inner for inner in loops if inner is not near[0]), near[0])
        return (*said, Copy(ordered, update, widest(near[0].limit or 1, 1)))

    def _copy(self, loop: For, taken: frozenset[Dim]) -> dict[str, Dim]:
        """Directions of a copy of its own, unless those that its loops have anyway differ."""
        found = staged_copy(loop, self.in_memory)
        if found is None:
            return {}
        loops, copy = found
        usual = [self._direction(inner) for inner in loops]
        if None not in usual and len(set(usual)) == len(usual):
            return {}
        return copy_directions(loops, copy, [dim for dim in DIMS if dim not in taken and self.threads.along(dim) > 1])

    def _may(self, loop: For, dim: Dim, taken: frozenset[Dim]) -> bool:
        """Whether threads along ``dim`` may share the iterations of ``loop``."""
        for inner in walk(loop.body):
            if isinstance(inner, For) and self._direction(inner) == dim:
                wanted = [s.target for s in updates(inner.body) if mentions(s.target, inner.variable)]
                if any(not mentions(target, loop.variable) for target in wanted):
                    return False
        return all(self._reduces(loop, name, taken.union([dim])) for name in shared(loop))

    def _reduces(self, loop: For, name: str, taken: frozenset[Dim]) -> bool:
        """Whether all that ``loop`` does with a buffer is to accumulate into it, in any order; shares fit registers."""
        touching = [place for place in places(loop.body) if place.buffer == name]
        into = [s for s in updates(loop.body) if isinstance(s, Accumulate) and s.target.buffer == name]
        if len(touching) != 1 or len(into) != 1 or into[0].op not in REDUCTIONS or mentions(touching[0], loop.variable):
            return False
        inside = {inner.variable: inner for inner in walk(loop.body) if isinstance(inner, For)}
        mine = [inside[v] for index in touching[0].indices for v in index.variables if v in inside]
        held = 1
        for inner in mine:
            if inner.limit is None or set(inner.outer) & {loop.variable, *inside} or inner.step != 1:
                return False
            dim = self._direction(inner)
            held *= -(-inner.limit // (1 if dim is None or dim in taken else self.threads.along(dim)))
        return held <= REGISTER_FLOATS

    def _in_shares(self, loop: For, dim: Dim, reduced: Sequence[Accumulate], taken: frozenset[Dim]) -> tuple[Node, ...]:
        """Each thread along ``dim`` accumulates a share of its own; all of them combine their shares after the loop."""
        inside = {inner.variable: inner for inner in walk(loop.body) if isinstance(inner, For)}
        shares = {s.target.buffer: self._share(s.target, inside, dim) for s in reduced}
        body = moved(loop.body, lambda place: shares.get(place.buffer, place))
        sweep = Sweep(loop, dim, self.block(body, taken.union([dim]), {}), self._width(loop, {}))
        before: list[Node] = []
        after: list[Node] = []
        for statement in reduced:
            share = shares[statement.target.buffer]
            around = [s for s in _path(sweep, share.buffer) if mentions(share, s.source.variable)]
            identity = OPS[statement.op].identity
            assert identity is not None, f"{statement.op} does not reduce"
            before += [Declare(share.buffer), nested(around, Assign(share, Constant(identity)))]
            after.append(nested(around, Combine(statement.target, statement.op, share, dim)))
        return (*before, sweep, *after)

    def _share(self, target: Load, inside: dict[str, For], dim: Dim) -> Load:
        variables = [v for index in target.indices for v in index.variables if v in inside]
        number = sum(buffer.name.startswith(f"{target.buffer}_share") for buffer in self.made)
        name = f"{target.buffer}_share{number + 1 if number else ''}"
        self.made.append(Buffer(name, tuple(inside[v].limit or 1 for v in variables), "local"))
        self.shares[name] = dim
        return Load(name, tuple(Index((v,)) for v in variables))


def _path(sweep: Sweep, buffer: str) -> Iterator[Sweep]:
    """The sweeps from ``sweep`` inwards to the update of ``buffer``."""
    yield sweep
    for node in sweep.body:
        if isinstance(node, Sweep) and _updates(node, buffer):
            yield from _path(node, buffer)


def _updates(node: Node, buffer: str) -> bool:
    match node:
        case Sweep():
            return any(_updates(inner, buffer) for inner in node.body)
        case Assign(target) | Accumulate(target):
            return target.buffer == buffer
        case _:
            return False
