"""What threads share of a nest, as ``lower/division.py`` has it: rows or, if these are few, what is inside them.

That is tiles, or chunks of what a row reduces; and so are chunks of a reduction that stands outside everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod
from typing import NamedTuple

from ilang_eq.extract.footprint import Extents, size_of
from ilang_eq.extract.trips import Loop, Node, turns
from ilang_eq.lower.chunks import chunked
from ilang_eq.lower.dependence import independent
from ilang_eq.lower.division import EVEN, FEW, TILED_UPDATES, rows_of
from ilang_eq.lower.ir import Accumulate, Buffer, For


class Tasks(NamedTuple):
    """What threads share.

    Attributes:
        number: of tasks at a time.
        positions: how often that of a task is found in several loops that make them up: once for each row of the last.
        entered: how often there are tasks: parallel loops that are entered.
    """

    number: float
    positions: float = 0.0
    entered: float = 1.0

    def used(self, threads: int) -> int:
        """How many of ``threads`` have something to do."""
        return max(1, min(threads, ceil(self.number)))

    def share(self, threads: int) -> float:
        """The part of the work that the busiest of ``threads`` has."""
        return ceil(self.number / threads) / self.number if threads > 1 else 1.0


class Chunks(NamedTuple):
    """Chunks of what each of so many ``rows`` reduces; ``results`` are those of all chunks of a row."""

    number: float
    rows: float
    results: tuple[Buffer, ...]


def tasks_of(loop: Loop, nest: For, chunks: Chunks | None, threads: int, extents: Extents) -> Tasks:
    """The tasks of ``loop``, which is ``nest`` at ``extents`` and cut into ``chunks``."""
    if threads > 1 and not nest.parallel:
        return Tasks(chunks.number if chunks else 1.0)
    rows = _rows(loop)
    *outer, last = (row.trips for row in rows) if rows else (1.0,)
    found = Tasks(prod(outer) * last, prod(outer) if outer else 0.0)
    if threads == 1 or not rows or found.number >= FEW:
        return found
    if chunks:
        return Tasks(chunks.number, entered=chunks.rows)
    tiles = _tiles(rows[-1].body)
    if tiles is None or tiles.number < FEW or _even(found, rows_of(nest), threads, extents):
        return found
    return Tasks(tiles.number, entered=found.number * tiles.entered)


def _even(tasks: Tasks, rows: Sequence[For], threads: int, extents: Extents) -> bool:
    """Whether no thread has much more than its share of ``rows``, of which the last may be short."""
    number = prod(size_of(row.extent, extents) / row.step for row in rows)
    return ceil(tasks.number / threads) * threads * EVEN <= number * (EVEN + 1)


def chunks_of(loop: Loop, nest: For, buffers: Sequence[Buffer]) -> Chunks | None:
    """What ``loop``, which is ``nest`` at some extents, is cut into, by however many threads; None if it is whole.

    Args:
        buffers: those of the kernel.
    """
    rows = _rows(loop) if nest.parallel else ()
    number = prod(row.trips for row in rows)
    if nest.parallel and (not rows or number >= FEW or _has_tiles(rows)):
        return None
    found = _chunks_in_rows(rows, nest, buffers) if rows else _chunks(loop, nest, (), buffers)
    return found._replace(rows=number) if found is not None and found.number >= max(2.0, number) else None


def _has_tiles(rows: Sequence[Loop]) -> bool:
    """Whether there are tiles enough in a row to share."""
    tiles = _tiles(rows[-1].body)
    return tiles is not None and tiles.number >= FEW


def _chunks_in_rows(rows: Sequence[Loop], nest: For, buffers: Sequence[Buffer]) -> Chunks | None:
    """The fewest chunks of anything that each of ``rows`` reduces, with the results of all; None if one is not cut."""
    around = rows_of(nest)
    if sum(loop.step > 1 for loop in around) > 1:
        return None
    loops = {node.variable: node for node in rows[-1].body if isinstance(node, Loop)}
    reducing = [s for s in around[-1].body if isinstance(s, For) and s.limit is None and not independent(s)]
    if any(s.variable not in loops for s in reducing):
        return None
    cut = [_chunks(loops[s.variable], s, around, buffers) for s in reducing]
    found = [chunks for chunks in cut if chunks is not None]
    if not found or len(found) < len(cut):
        return None
    return Chunks(min(chunks.number for chunks in found), 1.0, tuple(b for chunks in found for b in chunks.results))


def _chunks(loop: Loop, written: For, around: Sequence[For], buffers: Sequence[Buffer]) -> Chunks | None:
    """The chunks of ``loop``, which is ``written`` at some extents inside the loops ``around``; None if it is whole."""
    found = chunked(written, around, {buffer.name: buffer for buffer in buffers}, "_chunk")
    return None if found is None else Chunks(ceil(loop.trips * loop.step / found.length), 1.0, found.results)


def _rows(loop: Loop) -> tuple[Loop, ...]:
    """The loops whose iterations are tasks: this one and those perfectly inside it that are as independent."""
    loops = [loop] if loop.parallel else []
    while loops and len(loops[-1].body) == 1:
        inner = loops[-1].body[0]
        if not isinstance(inner, Loop) or inner.reduces or inner.width is not None or not _has_loops(inner):
            break
        if turns(inner):
            break
        loops.append(inner)
    return tuple(loops)


def _tiles(body: Sequence[Node]) -> Tasks | None:
    """The tiles of other axes in a row; None if anything else there reduces."""
    count = entered = 0.0
    for node in body:
        match node:
            case Loop(reduces=False) if node.width is None and node.step > 1 and _has_loops(node):
                if _updates(node) >= TILED_UPDATES:
                    count = max(count, node.trips)
                entered += 1.0
            case Loop(reduces=False) if not _accumulates(node):
                entered += 1.0
            case Loop(reduces=True, width=None):
                inside = _tiles(node.body)
                if inside is None:
                    return None
                count = max(count, inside.number)
                entered += node.trips * inside.entered
            case _:
                return None
    return Tasks(count, entered=entered)


def _updates(node: Node) -> float:
    """Of elements, in all iterations; those of whole tiles, as kernels do not look at how much of one there is."""
    if not isinstance(node, Loop):
        return float(isinstance(node, Accumulate))
    return (node.trips if node.width is None else node.width) * sum(map(_updates, node.body))


def _accumulates(node: Node) -> bool:
    return any(map(_accumulates, node.body)) if isinstance(node, Loop) else isinstance(node, Accumulate)


def _has_loops(loop: Loop) -> bool:
    return any(isinstance(node, Loop) for node in loop.body)
