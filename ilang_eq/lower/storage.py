"""Storage of one kernel: what each instance's buffer folds away, and how readers index what is left.

A dimension is folded where its loop is around the buffer's block. An axis folded from the outside leaves one
dimension of the remaining tile; a reader's index is the sum of its own loop variables less the folded ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from ilang_eq.lower.ir import Buffer, CeilDiv, Extent, Index, Load, Size
from ilang_eq.lower.nest import Block, Instance, NestLoop

Parts = list[tuple[str, NestLoop | None]]
"""The loop variables that make up a position along an axis, outermost level first, with the loops they come from."""


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer and the loops folded out of each of its tensor dimensions."""

    buffer: Buffer
    folded: tuple[tuple[NestLoop, ...], ...]
    steps: tuple[tuple[int, ...], ...]


def flat_place(buffer: Buffer, rank: int) -> Place:
    """A buffer that holds the whole tensor."""
    return Place(buffer, ((),) * rank, ((),) * rank)


def fold(instance: Instance, block: Block, name: str, extents: tuple[Extent, ...]) -> Place:
    """A local buffer for ``instance`` that lives in ``block``."""
    dims: list[Size] = []
    parts: list[tuple[Size, Extent]] = []
    folded: list[tuple[NestLoop, ...]] = []
    steps: list[tuple[int, ...]] = []
    for axis, extent in zip(instance.expr.output, extents, strict=True):
        loops = instance.loops[axis]
        gone = tuple(loop for loop in loops if loop is not None and block.inside(loop))
        levels = {level for level, loop in enumerate(loops) if loop in gone}
        sizes = _sizes(instance.expr.factors[axis], extent)
        left = [sizes[level] for level in range(len(loops)) if level not in levels]
        folded.append(gone)
        if not levels:
            dims.append(extent)
            parts.append((extent, extent))
            steps.append(())
        elif levels == set(range(len(levels))):
            if left:
                dims.append(_product(left))
            parts.extend((size, extent) for size in left)
            steps.append(())
        else:
            dims.extend(left)
            parts.extend((size, extent) for size in left)
            steps.append(
                tuple(split_step(instance.expr.factors[axis], n) for n in range(len(loops)) if n not in levels)
            )
    buffer = Buffer(name, tuple(dims), "local", instance.node, tuple(parts))
    return Place(buffer, tuple(folded), tuple(steps))


def _sizes(factors: tuple[int, ...], extent: Extent) -> list[Size]:
    return [CeilDiv(extent, split_step(factors, 0)) if factors else extent, *factors]


def split_step(factors: tuple[int, ...], level: int) -> int:
    """How far one step of a level's loop goes along the axis."""
    step = 1
    for factor in factors[level:]:
        step *= factor
    return step


def _product(sizes: list[Size]) -> int:
    product = 1
    for size in sizes:
        assert isinstance(size, int), "only the outermost level of an axis depends on its extent"
        product *= size
    return product


def load(place: Place, positions: list[Parts]) -> Load:
    """The element of ``place`` at one position per tensor dimension."""
    indices: list[Index] = []
    for folded, steps, position in zip(place.folded, place.steps, positions, strict=True):
        left = tuple([variable for variable, loop in position if loop is None or loop not in folded])
        if steps:
            indices.extend(Index((v,), step) for v, step in zip(left, steps, strict=True))
        elif left or not folded:
            indices.append(Index(left))
    return Load(place.buffer.name, tuple(indices))
