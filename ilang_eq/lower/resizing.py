"""Lowering again with other tile sizes: a search sees the same schedules with hundreds of them.

before →  +ij~i|j:64|ijj'   lowered: for i: for j step 64: for j' < 64: …
after  →  +ij~i|j:48|ijj'   the same loops with other steps: for i: for j step 48: for j' < 48: …

Whether loops are merged, folded or repaired depends on which steps along an axis are the same, not on what they are. So
of graphs that are alike in that, one is lowered, and for the others its steps are replaced by theirs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ilang_eq.lang.graph import Graph
from ilang_eq.lang.shapes import Dimension
from ilang_eq.lower.ir import Buffer, Comment, For, Kernel, Program, Statement
from ilang_eq.lower.lowering import lowered_by_rows, shapes_of
from ilang_eq.lower.panels import in_panels
from ilang_eq.lower.storage import split_step
from ilang_eq.lower.walk import places

Steps = tuple[int, ...]
"""The steps of a graph's split axes, expression by expression."""


@dataclass(slots=True)
class Lowerings:
    """What ``lower`` returns, without comments and without how dimensions are split."""

    _known: dict[Hashable, list[_Lowered]] = field(default_factory=dict)

    def lower(self, graph: Graph) -> Program:
        """Lower every kernel of ``graph``; raises what ``lower`` raises, but lists no alternatives."""
        unsized, steps = _unsized(graph)
        known = self._known.setdefault(unsized, [])
        for lowered in known:
            replaced = lowered.replaced(steps)
            if replaced is not None:
                return in_panels(_resized(lowered.program, replaced))
        program = lowered_by_rows(graph)
        if _in_steps(program):
            program = _resized(program, {step: step for step in (1, *steps)})
            known.append(_Lowered(program, steps, _extents(graph)))
        return in_panels(program)


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A graph that was lowered, with its steps and the extents of their axes."""

    program: Program
    steps: Steps
    extents: tuple[Dimension, ...]

    def replaced(self, steps: Steps) -> Mapping[int, int] | None:
        """What its steps become in a graph that differs in ``steps`` alone.

        None if others are the same there, or if one would have to become two.
        """
        pairs = {(extent, 1, 1) for extent in self.extents}.union(zip(self.extents, self.steps, steps, strict=True))
        mine, theirs = ({(pair[0], pair[which]) for pair in pairs} for which in (1, 2))
        found = {1: 1} | dict(zip(self.steps, steps, strict=True))
        alike = len(mine) == len(theirs) == len(pairs)
        return found if alike and all(found[before] == after for _, before, after in pairs) else None


def _unsized(graph: Graph) -> tuple[Hashable, Steps]:
    """``graph`` without its factors, and the steps that they make."""
    steps: list[int] = []
    nodes: list[Hashable] = []
    for node in graph.nodes:
        expr = node.expr
        splits = tuple([(axis, len(factors)) for axis, factors in expr.splits])
        steps += [split_step(factors, level) for _, factors in expr.splits for level in range(len(factors))]
        nodes.append((expr.op, expr.operands, expr.output, splits, expr.order, node.operands))
    return (graph.inputs, tuple(nodes), graph.outputs), tuple(steps)


def _extents(graph: Graph) -> tuple[Dimension, ...]:
    """The extent of the axis of each step."""
    shapes = shapes_of(graph)
    splits = ((n, axis, factors) for n, node in enumerate(graph.nodes) for axis, factors in node.expr.splits)
    return tuple([shapes.extent(n, axis) for n, axis, factors in splits for _ in factors])


def _in_steps(program: Program) -> bool:
    """Whether all sizes are steps; with an inner level of an axis folded alone, some are what one is of another."""
    found = (place for kernel in program.kernels for place in places(kernel.body))
    return all(index.divisor == 1 for place in found for index in place.indices)


def _resized(program: Program, steps: Mapping[int, int]) -> Program:
    """``program`` with its steps replaced, without comments."""
    kernels = tuple([Kernel(kernel.name, _statements(kernel.body, steps)) for kernel in program.kernels])
    return replace(program, kernels=kernels, buffers=tuple([_buffer(buffer, steps) for buffer in program.buffers]))


def _buffer(buffer: Buffer, steps: Mapping[int, int]) -> Buffer:
    dims = tuple([steps[size] if isinstance(size, int) else size for size in buffer.dims])
    return Buffer(buffer.name, dims, buffer.role, buffer.leaf, (), buffer.symmetric)


def _statements(body: Sequence[Statement], steps: Mapping[int, int]) -> tuple[Statement, ...]:
    return tuple([_loop(s, steps) if isinstance(s, For) else s for s in body if not isinstance(s, Comment)])


def _loop(loop: For, steps: Mapping[int, int]) -> For:
    limit = None if loop.limit is None else steps[loop.limit]
    body = _statements(loop.body, steps)
    return For(loop.variable, loop.extent, steps[loop.step], limit, loop.outer, body, loop.parallel, loop.reduces)
