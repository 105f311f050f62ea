"""What lowering a component leads to, before any code is written: kernels, buffers, online corrections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ilang_eq.lang.component import Component
from ilang_eq.lang.shapes import infer, whole_shapes
from ilang_eq.lang.wiring import wire
from ilang_eq.lower.ir import CeilDiv, Correction, Extent, Program, Size
from ilang_eq.lower.lowering import lower


@dataclass(frozen=True, slots=True)
class Plan:
    """The consequences of a schedule.

    Attributes:
        kernels: loop nests dispatched on their own.
        buffers: extents of every intermediate, folded dimensions left out; ``()`` is one scalar. Integers where
            shapes were given or a split fixes them, else symbols such as ``in0.1`` and ``ceil(in0.1/4)``.
        corrections: the online reductions.
    """

    kernels: int
    buffers: tuple[tuple[int | str, ...], ...]
    corrections: tuple[Correction, ...]

    def __str__(self) -> str:
        buffers = ", ".join("[" + ", ".join(map(str, dims)) + "]" for dims in self.buffers)
        online = ", ".join(f"{c.accumulator} follows {c.statistic} ({c.kind})" for c in self.corrections)
        return f"kernels: {self.kernels}\nbuffers: {buffers or 'none'}\nonline corrections: {online or 'none'}"


def plan_of(component: Component, shapes: Sequence[tuple[int, ...]] | None = None) -> Plan:
    """Lower ``component`` and summarise. Raises what ``lower`` raises, and ShapeError for shapes that do not fit."""
    graph = wire(component)
    extents = None if shapes is None else infer(graph).bind(whole_shapes(shapes))
    return summarise(lower(graph), extents)


def summarise(program: Program, extents: dict[tuple[int, int], int] | None = None) -> Plan:
    """The plan of a lowered program, in numbers where ``extents`` are known."""
    intermediate = {
        (b.leaf, tuple(_shown(*part, extents) for part in b.parts)): None
        for b in program.buffers
        if b.role in ("workspace", "local")
    }
    return Plan(len(program.kernels), tuple(dims for _, dims in intermediate), program.corrections)


def _shown(size: Size, of: Extent, extents: dict[tuple[int, int], int] | None) -> int | str:
    match size:
        case int():
            # a tile larger than its axis is used only as far as the axis goes
            return size if extents is None else min(size, extents[of.input, of.dim])
        case Extent(k, d):
            return str(size) if extents is None else extents[k, d]
        case CeilDiv(extent, divisor):
            if extents is None:
                return f"ceil({extent}/{divisor})"
            return -(-extents[extent.input, extent.dim] // divisor)
