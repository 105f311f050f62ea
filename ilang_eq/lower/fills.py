"""Sums that come in blocks start in the first block, and not in a pass of their own over what they are summed into.

before →  for i: for j: out[i][j] = 0
          for k step 256: for i step 6: { for k' < 256: for i' < 6: for j' < 64: out[i+i'][j'] += … }
after  →  where there is no k: for i: for j: out[i][j] = 0
          for k step 256: for i step 6: { at the first k: for i' < 6: for j' < 64: out[i+i'][j'] = 0
                                          for k' < 256: for i' < 6: for j' < 64: out[i+i'][j'] += … }

The former is another pass of writing, and what it wrote is read again before anything is added. A target that holds its
sums in registers loads them only where they have begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ilang_eq.lower.dependence import perfect
from ilang_eq.lower.ir import Accumulate, Assign, Constant, Extent, For, Index, Kernel, Load, Statement
from ilang_eq.lower.walk import code, mentions, places, touches
from ilang_eq.lower.within import enclosed, nested


def in_first_blocks(kernel: Kernel) -> Kernel:
    """``kernel`` with tiles set to what their reductions start from where they are first accumulated into."""
    body = _block(kernel.body)
    return kernel if body is kernel.body else Kernel(kernel.name, body)


@dataclass(frozen=True, slots=True)
class _Fill:
    """A nest that sets every element of ``target`` that ``loops`` run over to a number."""

    target: Load
    loops: tuple[For, ...]
    value: Constant

    def where_empty(self, extents: Sequence[Extent]) -> Statement:
        """The nest, to run only where one of ``extents`` is 0."""
        return _under(nested(self.loops, Assign(self.target, self.value)), without=tuple(extents))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """An accumulation that comes to each tile of its target several times.

    Args:
        update: the accumulation.
        outer: the loops around a tile, from the statement inwards that follows the fill.
        turns: those of them that the target does not move with.
        reduction: the outermost loop over what comes to a tile in one turn.
        tile: the loops over its elements, inside that.
    """

    update: Accumulate
    outer: tuple[For, ...]
    turns: tuple[For, ...]
    reduction: For
    tile: tuple[For, ...]

    def begun(self, value: Constant) -> Statement:
        """Sets a tile to ``value`` in the first turn."""
        first = tuple(loop.variable for loop in self.turns)
        return _under(nested(self.tile, Assign(self.update.target, value)), first=first)


def _under(nest: Sequence[Statement], first: tuple[str, ...] = (), without: tuple[Extent, ...] = ()) -> Statement:
    (loop,) = nest
    assert isinstance(loop, For), "a tile has elements"
    return replace(loop, first=first, without=without)


def _block(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """``statements`` themselves if nothing in them changes."""
    if not any(isinstance(s, For) for s in statements):
        return statements
    block = [_inside(s) if isinstance(s, For) else s for s in statements]
    for position, statement in enumerate(block[:-1]):
        fill = _fill(statement)
        user = None if fill is None else _next(block, position, fill.target.buffer)
        blocks = None if fill is None or user is None else _blocks(block[user], fill.target.buffer)
        if fill is None or user is None or blocks is None or not _same_elements(fill, blocks):
            continue
        block[position] = fill.where_empty(tuple(dict.fromkeys(loop.extent for loop in blocks.turns)))
        (block[user],) = _before(blocks.reduction, blocks.begun(fill.value), [block[user]])
    return tuple(block) if any(new is not old for new, old in zip(block, statements, strict=True)) else statements


def _inside(loop: For) -> For:
    body = _block(loop.body)
    return loop if body is loop.body else replace(loop, body=body)


def _next(block: Sequence[Statement], position: int, buffer: str) -> int | None:
    """The first statement after ``position`` that touches ``buffer``."""
    return next((n for n in range(position + 1, len(block)) if touches(block[n], buffer)), None)


def _before(loop: For, statement: Statement, statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """``statements`` with ``statement`` right before ``loop``, which is somewhere in them."""
    found: list[Statement] = []
    for s in statements:
        if s is loop:
            found += [statement, s]
        else:
            found.append(replace(s, body=_before(loop, statement, s.body)) if isinstance(s, For) else s)
    return tuple(found)


def _fill(statement: Statement) -> _Fill | None:
    if not isinstance(statement, For) or statement.seldom:
        return None
    loops, body = perfect(statement)
    match code(body):
        case (Assign(target, Constant() as value),):
            return _Fill(target, loops, value)
        case _:
            return None


def _blocks(statement: Statement, buffer: str) -> _Blocks | None:
    """How ``statement`` accumulates into ``buffer``, if it does nothing else with it, and does that in blocks.

    A loop over the elements of a tile is constant. One that the target does not move with may be inside: the lanes of a
    product of rows.
    """
    (use, *more) = islice((e for e in enclosed([statement]) if touches(e.statement, buffer)), 2)
    update, loops = use.statement, list(use.around)
    if more or not isinstance(update, Accumulate) or len([p for p in places([update]) if p.buffer == buffer]) > 1:
        return None
    turning = [not mentions(update.target, loop.variable) for loop in loops]
    end = len(loops)
    while end and turning[end - 1]:
        end -= 1
    start = end
    while start and not turning[start - 1] and loops[start - 1].limit is not None and loops[start - 1].step == 1:
        start -= 1
    begin = start
    while begin and turning[begin - 1]:
        begin -= 1
    turns = tuple(loop for loop, turns in zip(loops[:begin], turning, strict=False) if turns)
    again = {loop.variable for loop in turns}
    if start == end or begin == start or not turns or any(not set(loop.outer) <= again for loop in turns):
        return None
    return _Blocks(update, tuple(loops[:begin]), turns, loops[begin], tuple(loops[start:end]))


def _same_elements(fill: _Fill, blocks: _Blocks) -> bool:
    """Whether the first turn comes to every element that ``fill`` sets, and to no other."""
    loops = [loop for loop in (*blocks.outer, *blocks.tile) if loop not in blocks.turns]
    target = blocks.update.target
    pairs = zip(fill.target.indices, target.indices, strict=True)
    return all(_range(mine, fill.loops) == _range(theirs, loops) is not None for mine, theirs in pairs) and all(
        sum(loop.variable in index.variables for index in place.indices) == 1
        for place, along in ((fill.target, fill.loops), (target, loops))
        for loop in along
    )


def _range(index: Index, loops: Sequence[For]) -> tuple[object, ...] | None:
    """What decides which positions ``index`` takes in ``loops``; None if they are not all up to an end.

    The parts of an axis, the outermost first, take all positions that a step of the loop around them leaves.
    """
    own = [loop for loop in loops if loop.variable in index.variables]
    base = frozenset(index.variables) - {loop.variable for loop in own}
    if index.divisor != 1 or len(set(index.variables)) < len(index.variables):
        return None
    if not own:
        return (base,)
    around, step = frozenset(own[0].outer), own[0].limit
    for loop in own:
        if (loop.extent, loop.limit, frozenset(loop.outer)) != (own[0].extent, step, around):
            return None
        around, step = around | {loop.variable}, loop.step
    return (base, own[0].extent, own[0].limit, frozenset(own[0].outer)) if step == 1 else None
