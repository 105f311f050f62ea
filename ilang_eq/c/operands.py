"""What a pass reads of an argument beside the sums of a register tile is asked for while the tile sums.

before →  for k: { for i by 8: { for l: tile += ...;  t[i] = tile }  for i: t[i] = exp(t[i] + bias[i][k]) }
after  →  for k: { for i by 8: { for l: { ask for a line of bias[i…i+7][k];  tile += ... }  t[i] = tile }  for i: ... }

Such passes read short parts of many rows, which no prefetcher sees coming. They would wait for memory, and memory for
them while tiles sum, which leaves slots to ask in: each reduction asks for what lies beside its own sums, a line in
each step. Attention with soft-cap and 16 MiB of bias takes 0.97 of the time on Zen 5 that it takes if passes ask for
later parts of their rows, with arrays as NumPy allocates them, 16 bytes into a line; as long where rows begin with one.
Prefetchers find the end of longer rows: x - (x·P)·Pᵀ in tiles of 12 × 512 takes 1.06 of the time if tiles of 6 × 64
sums ask for x.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ilang_eq.c.ahead import FOLLOWED
from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Loop, Node, Operand, Registers, VectorNest, Versions
from ilang_eq.lower.addresses import flat_index, index_text, size_text
from ilang_eq.lower.dependence import perfect
from ilang_eq.lower.ir import Assign, For, Index, Load, Statement
from ilang_eq.lower.passes import FAR
from ilang_eq.lower.walk import loads, mentions, stride, substituted, updates
from ilang_eq.lower.widths import LINE


def with_operands(nodes: tuple[Node, ...], later: Sequence[Statement], beyond: Sequence[For]) -> tuple[Node, ...]:
    """``nodes``, whose full register tiles ask for what passes read beside their sums.

    Args:
        later: what comes after them in the nearest block where something does.
        beyond: the loops in that block which the nodes stand in.
    """

    def with_them(node: Node) -> Node:
        match node:
            case Versions(full=full):
                return replace(node, full=tuple(map(with_them, full)))
            case Registers(partial=()):
                operands = {one.place.buffer: one for one in _operands(node, later, beyond)}
                return replace(node, body=tuple(_asking(inner, tuple(operands.values())) for inner in node.body))
            case _:
                return node

    return tuple(map(with_them, nodes))


def _asking(node: Node, operands: tuple[Operand, ...]) -> Node:
    match node:
        case Loop(source, part="whole") if source.step == 1:
            return replace(node, operands=operands)
        case _:
            return node


def _operands(tile: Registers, later: Sequence[Statement], beyond: Sequence[For]) -> Iterator[Operand]:
    """What passes read beside the sums that ``tile`` leaves in its targets."""
    for node in tile.body:
        match node:
            case VectorNest((rows, lane), body=(Assign(target, Load()),)) if stride(target, lane.variable) == "unit":
                found = (_operand(target, (rows, lane), *beside) for beside in _beside(target.buffer, later))
                yield from (one for one in found if one and all(mentions(one.place, b.variable) for b in beyond))
            case _:
                pass


def _beside(buffer: str, later: Sequence[Statement]) -> Iterator[tuple[tuple[For, ...], Load, Load]]:
    """What passes over parts of rows read beside ``buffer``: their loops, where they read that, and another place."""
    for statement in later:
        nest, body = perfect(statement) if isinstance(statement, For) else ((), ())
        short = len(nest) == 2 and (nest[-1].limit or FAR) <= FOLLOWED
        places = [place for update in updates(body) for place in loads(update.value)] if short else []
        for sums in (place for place in places if place.buffer == buffer):
            yield from ((nest, sums, place) for place in places if place.buffer != buffer)


def _operand(target: Load, tile: tuple[For, For], nest: Sequence[For], sums: Load, place: Load) -> Operand | None:
    """``place``, read in ``nest`` beside ``sums``, where the loops of a ``tile`` leave these in ``target``."""
    names: dict[str, tuple[str, ...]] = {}
    for mine, its in zip(target.indices, sums.indices, strict=True):
        moving = [v for v in its.variables if any(v == loop.variable for loop in nest)]
        fixed = [v for v in its.variables if v not in moving]
        rest = tuple(v for v in mine.variables if v not in fixed)
        if len(moving) > 1 or (rest and not moving) or mine.divisor != 1 or its.divisor != 1:
            return None
        names.update(dict.fromkeys(moving, rest))
    if any(loop.variable not in names for loop in nest):
        return None
    indices = (Index(tuple(n for v in x.variables for n in names.get(v, (v,))), x.divisor) for x in place.indices)
    found, (rows, lane) = Load(place.buffer, tuple(indices)), tile
    apart = found.indices and not mentions(Load("", found.indices[-1:]), rows.variable)
    if not apart or stride(found, rows.variable) != "far" or stride(found, lane.variable) != "unit":
        return None
    return Operand(found, rows, lane)


def operands_asked(nodes: Sequence[Node]) -> frozenset[str]:
    """The buffers of which reductions among ``nodes`` ask for parts that passes read."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case Loop(body=body, operands=operands):
                found |= {one.place.buffer for one in operands} | operands_asked(body)
            case Versions(full=inner) | Registers(body=inner):
                found |= operands_asked(inner)
            case _:
                pass
    return frozenset(found)


def operand_lines(reduction: Loop, layout: Layout, steps: str) -> tuple[list[str], list[str], list[str]]:
    """What stands before ``reduction``, what each of its ``steps`` asks for, and what comes after them."""
    before: list[str] = []
    inside: list[str] = []
    after: list[str] = []
    for one in reduction.operands:
        name, dims = one.place.buffer, layout.buffers[one.place.buffer].dims
        if layout.storage.get(name) not in ("argument", "shared"):
            continue
        rows, width = one.rows.limit or 1, one.lane.limit or 1
        # rows begin anywhere in a line
        lines = rows * ((width + LINE - 2) // LINE + 1)
        before.append(f"const int64_t {name}_lines = {' * '.join(map(size_text, dims))} >= {FAR} ? {lines} : 0;")
        inside += [
            f"if ({reduction.source.variable} < {name}_lines)",
            f"    {_ask(one, reduction.source.variable, layout)}",
        ]
        line = f"{name}_line"
        after += [
            f"for (int64_t {line} = {steps}; {line} < {name}_lines; {line}++)",
            f"    {_ask(one, line, layout)}",
        ]
    return before, inside, after


def _ask(operand: Operand, line: str, layout: Layout) -> str:
    """Asks for one of the lines of ``operand``, row by row."""
    place, rows = operand.place, operand.rows
    place = substituted(place, rows.variable, (f"{line} % {rows.limit}",))
    place = substituted(place, operand.lane.variable, (f"{line} / {rows.limit} * {LINE}",))
    first = flat_index([index_text(index) for index in place.indices], layout.buffers[place.buffer].dims)
    return f"fetch_soon({place.buffer}, {first}, {LINE});"
