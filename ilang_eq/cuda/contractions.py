"""Which sums of products the tensor cores take, and how a block's threads then share out the loops.

    before   for k1 < 32: for i1 < 128: for j1 < 64: product = x[i1][k1] * y[k1][j1];  sum[i1][j1] += product
    after    Contract(sum[i1][j1], x[i1][k1], y[k1][j1])

What decides is the loops and the places alone: three element loops of constant length around nothing but the sum of
a product of two locals, which leaves out one loop of the three each, lengths in whole ``ROWS``, ``COLUMNS``, ``DEPTH``.
Four warps take one together (``warpgroups.py``) where a factor is copied, which is ``right`` then: as it lies, in rows
of ``SWIZZLED`` depths, else turned on its way to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ilang_eq.cuda.directions import Directions, copies_in, staged_copy
from ilang_eq.cuda.nodes import GROUP_COLUMNS, SWIZZLED, Block, Contract, Dim, Part, part_of
from ilang_eq.lower.dependence import perfect
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Declare, For, Load, Statement
from ilang_eq.lower.walk import code, loads, mentions, updates, walk

ROWS, COLUMNS, DEPTH = 16, 8, 8
"""What one instruction of a warp takes (PTX ``mma.m16n8k8``)."""
LANES_X, LANES_Y = 4, 8
"""How a warp's threads lie over the sums of one: each has two neighbours in a row, and the same eight rows on."""
PAIR = 2
"""Neighbouring columns that a thread has."""
FEWEST_WARPS, MOST_WARPS = 4, 8
SUMS = {1: 128, 2: 64}
"""Sums that a thread keeps before the block gets more warps, by the parts of factors."""
MOST_ROWS = 2 * ROWS
"""Rows of a warp of a group before the block gets more warps, where factors have two parts: it takes sixteen at a time,
and waits for their products."""
GROUP = 4
"""Warps that take rows below each other together (PTX ``wgmma``)."""
MOST_COLUMNS = 256
"""What one of their instructions takes."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the threads of a block share out loops around contractions.

    Args:
        contracts: what the tensor cores do.
        directions: of the parts that are rows and columns.
        widths: how many neighbours of each part one thread takes together.
        block: the threads.
    """

    contracts: frozenset[Contract]
    directions: Directions
    widths: Mapping[Part, int]
    block: Block


@dataclass(frozen=True, slots=True)
class _Copies:
    """Locals of a region that copies of memory fill; ``private`` are those that one product has to itself."""

    all: frozenset[str]
    private: frozenset[str]


def contraction(loop: For, in_memory: frozenset[str]) -> Contract | None:
    """What the nest that ``loop`` heads sums, the last index of the target as columns; None unless it fits."""
    loops, body = perfect(loop)
    found = _summed_product(body)
    if found is None or len(loops) != 3 or not all(_over_elements(inner, loops) for inner in loops):
        return None
    target, first, second = found
    by_name = {inner.variable: replace(inner, body=()) for inner in loops}
    own = [by_name[v] for index in target.indices for v in index.variables if v in by_name]
    if len(own) != 2 or not all(_plain(place, by_name) for place in found):
        return None
    rows, columns = own
    (depth,) = (inner for inner in by_name.values() if inner not in own)
    if {first.buffer, second.buffer} & {target.buffer, *in_memory}:
        return None
    left, right = (first, second) if mentions(first, rows.variable) else (second, first)
    made = Contract(target, left, right, rows, columns, depth)
    return made if _pairs_up(made) else None


def _summed_product(body: Sequence[Statement]) -> tuple[Load, Load, Load] | None:
    """The target and the two factors, if ``body`` adds their product to it and does nothing else."""
    match code(body):
        case (Accumulate(target, "add", Apply("mul", (Load() as x, Load() as y))),):
            return target, x, y
        case (
            Declare(name),
            Assign(Load(made, ()), Apply("mul", (Load() as x, Load() as y))),
            Accumulate(target, "add", Load(added, ())),
        ) if name == made == added:
            return target, x, y
        case _:
            return None


def _over_elements(loop: For, nest: Sequence[For]) -> bool:
    inside = {other.variable for other in nest}
    return loop.step == 1 and loop.limit is not None and not inside & set(loop.outer)


def _plain(place: Load, loops: Mapping[str, For]) -> bool:
    """Whether each loop moves one index of ``place`` at most, alone in it."""
    moving = [index for index in place.indices if set(index.variables) & set(loops)]
    names = [index.variables[0] for index in moving]
    return len(set(names)) == len(names) and all(len(i.variables) == 1 and i.divisor == 1 for i in moving)


def _pairs_up(found: Contract) -> bool:
    """Whether each factor leaves out the other's loop of the target, and has the depth."""

    def has(place: Load, loops: Sequence[For]) -> bool:
        return [mentions(place, loop.variable) for loop in found.loops] == [loop in loops for loop in found.loops]

    return has(found.left, (found.rows, found.depth)) and has(found.right, (found.columns, found.depth))


def _turned(found: Contract) -> Contract:
    """The same sum, of the transposed product."""
    return replace(found, left=found.right, right=found.left, rows=found.columns, columns=found.rows)


def same_sum(chosen: Contract, found: Contract) -> bool:
    """Whether ``chosen`` is ``found``, transposed or not."""
    return replace(chosen, parts=1, handed=False, grouped=False) in (found, _turned(found))


def _fits(found: Contract) -> bool:
    sizes = zip(found.loops, (ROWS, COLUMNS, DEPTH), strict=True)
    return all(loop.limit is not None and loop.limit % size == 0 for loop, size in sizes)


def _suits_group(found: Contract, copies: _Copies, parts: int) -> bool:
    """Whether four warps may take it together: both factors are copies, ``right`` in rows of the depth, of one tile.

    In two parts, ``right`` may lie the other way, and threads may have ``left``: then it pays to turn tiles. As it
    lies, it must be the product's own then: infinities change in their place when threads take it apart.
    """
    rows, columns, depth = (loop.limit or 0 for loop in found.loops)
    tile = [index.variables for index in found.right.indices]
    across = ((found.columns.variable,), (found.depth.variable,))
    lies = tile == [*across] and depth == SWIZZLED
    if parts == 1:
        right = lies and found.left.buffer in copies.all
    else:
        right = (lies and found.right.buffer in copies.private) or tile == [*reversed(across)]
    alone = len(found.target.indices) == 2 and found.left.buffer != found.right.buffer
    fits = rows % (GROUP * ROWS) == 0 and columns % GROUP_COLUMNS == 0 and columns <= MOST_COLUMNS
    return right and alone and fits and depth % SWIZZLED == 0 and found.right.buffer in copies.all


def _group_rank(found: Contract, copies: _Copies, parts: int, single: bool) -> tuple[int, int]:
    """What a group rather takes is less: right factors as they lie, then more rows, if nothing else needs them."""
    if not _suits_group(found, copies, parts):
        return 2, 0
    return int(found.turned), -(found.rows.limit or 0) if single else 0


def sharing(body: Sequence[Statement], in_memory: frozenset[str], parts: int) -> Sharing | None:
    """How threads share out the loops of a region whose products tensor cores take; None if there are none.

    ``parts`` says how many tf32 numbers each factor is taken as.
    """
    copies = _Copies(copies_in(body, in_memory), _private(body, in_memory))
    found = sorted(_found(body, in_memory), key=lambda c: {c.left.buffer, c.right.buffer} <= copies.all)
    grouped = _shared_out(found, copies, parts, groups=True)
    return grouped or _shared_out(found, copies, parts, groups=False)


def _private(body: Sequence[Statement], in_memory: frozenset[str]) -> frozenset[str]:
    """Copies that are read in one place, in a nest beside the one that makes them: anew whenever they are read."""
    reads = Counter(load.buffer for update in updates(body) for load in loads(update.value))
    found: set[str] = set()
    for block in (body, *(loop.body for loop in walk(body) if isinstance(loop, For))):
        nests = [statement for statement in block if isinstance(statement, For)]
        made = {copy[1].target.buffer for nest in nests if (copy := staged_copy(nest, in_memory)) is not None}
        products = [one for nest in nests if (one := contraction(nest, in_memory)) is not None]
        found |= {name for one in products for name in (one.left.buffer, one.right.buffer)} & made
    return frozenset(name for name in found if reads[name] == 1)


def _shared_out(found: Sequence[Contract], copies: _Copies, parts: int, groups: bool) -> Sharing | None:
    """How threads share out the loops around what is ``found``; with ``groups``, if four warps take some of it."""
    copied = copies.all
    dims: Directions = {}
    kept: list[Contract] = []
    for plain in found:
        # what threads compute is best handed on in registers, as the left factor
        first = plain if plain.left.buffer not in copied or plain.right.buffer in copied else _turned(plain)
        options = [first, _turned(first)]
        if groups:
            options.sort(key=lambda one: _group_rank(one, copies, parts, len(found) == 1))
        for one in options:
            wanted: dict[Part, Dim] = {_part(one.rows): "y", _part(one.columns): "x"}
            if _fits(one) and len(wanted) == 2 and all(dims.get(part, dim) == dim for part, dim in wanted.items()):
                dims |= wanted
                kept.append(one)
                break
    handed = [one.left.buffer not in copied and dims.get(_part(one.depth)) == "x" for one in kept]
    grouped = [groups and _suits_group(one, copies, parts) for one in kept]
    # of the right factor, threads of a group keep nothing
    most = SUMS[1 if all(grouped) else parts]
    rows = MOST_ROWS if groups and parts == 2 else MOST_WARPS * MOST_COLUMNS
    warps = _warps(kept, any(handed + grouped), most, rows) if kept else None
    if warps is None or (groups and (not any(grouped) or warps[1] % GROUP)):
        return None
    block = Block(LANES_X * warps[0], LANES_Y * warps[1], LANES_X)
    contracts = frozenset(
        replace(one, parts=parts, handed=hands, grouped=group)
        for one, hands, group in zip(kept, handed, grouped, strict=True)
    )
    return Sharing(contracts, dims, {part: PAIR if dim == "x" else 1 for part, dim in dims.items()}, block)


def _found(body: Sequence[Statement], in_memory: frozenset[str]) -> Iterator[Contract]:
    for statement in body:
        if isinstance(statement, For):
            found = contraction(statement, in_memory)
            if found is None:
                yield from _found(statement.body, in_memory)
            else:
                yield found


def _part(loop: For) -> Part:
    part = part_of(loop)
    assert part is not None, "an element loop runs over a part"
    return part


def _warps(contracts: Sequence[Contract], alone: bool, most: int, rows: int) -> tuple[int, int] | None:
    """The warps of a block along x and y, so that each has a piece of every tile, as square as may be.

    None if a thread would have over ``most`` sums. With ``alone``, there is one along x, which has whole rows; over
    ``rows`` of them, others take some.
    """
    x, y = 1, 1
    while x * y < MOST_WARPS and (x * y < FEWEST_WARPS or _sums(contracts, x, y) > most or _rows(contracts, y) > rows):
        options = [(x, 2 * y)] if alone else [(2 * x, y), (x, 2 * y)]
        options = [(a, b) for a, b in options if all(_divides(one, a, b) for one in contracts)]
        if not options:
            break
        x, y = min(options, key=lambda option: sum(_border(one, *option) for one in contracts))
    return (x, y) if _sums(contracts, x, y) <= most else None


def _divides(one: Contract, x: int, y: int) -> bool:
    return (one.rows.limit or 0) % (ROWS * y) == 0 and (one.columns.limit or 0) % (COLUMNS * x) == 0


def _border(one: Contract, x: int, y: int) -> float:
    """Rows and columns that a warp reads for its piece."""
    return (one.rows.limit or 0) / y + (one.columns.limit or 0) / x


def _rows(contracts: Sequence[Contract], y: int) -> int:
    """Rows that a warp has at most."""
    return max((one.rows.limit or 0) // y for one in contracts)


def _sums(contracts: Sequence[Contract], x: int, y: int) -> int:
    """Sums that a thread keeps."""
    elements = {one.target.buffer: (one.rows.limit or 0) * (one.columns.limit or 0) for one in contracts}
    return sum(elements.values()) // (LANES_X * LANES_Y * x * y)


def check_contract(contract: Contract, block: Block) -> None:
    """Raise AssertionError where a contract breaks what ``tensor_cores.py`` relies on."""
    rows, columns, depth = (loop.limit or 0 for loop in contract.loops)
    assert block.across == LANES_X, "a warp is four threads along x and eight along y"
    assert rows % (2 * block.y) == 0, "rows come in pairs"
    assert columns % (PAIR * block.x) == 0, "columns come in pairs"
    assert depth % DEPTH == 0, "the depth is whole steps"
    assert not contract.handed or block.x == LANES_X, "what is handed on stays in its warp"
    assert not contract.grouped or block.x == LANES_X, "warps of a group have whole rows"
    assert not contract.grouped or block.y % (GROUP * LANES_Y) == 0, "groups are whole"
