"""Lowering again with other tile sizes: a search sees the same schedules with hundreds of them.

before →  +ij~i|j:64|ijj'   lowered: for i: for j step 64: for j' < 64: …
after  →  +ij~i|j:48|ijj'   the same loops with other steps: for i: for j step 48: for j' < 48: …

Whether loops are merged, folded or repaired depends on which steps are the same, not on what they are. So of graphs
that are alike in that, one is lowered, and for the others its steps are replaced by theirs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ilang_eq.lang.graph import Graph
from ilang_eq.lower.ir import Buffer, Comment, For, Kernel, Program, Statement
from ilang_eq.lower.lowering import lowered_by_rows
from ilang_eq.lower.panels import in_panels
from ilang_eq.lower.storage import split_step
from ilang_eq.lower.walk import places

Steps = tuple[int, ...]
"""The steps of all loops, each once, in a fixed order; the first is 1."""


@dataclass(slots=True)
class Lowerings:
    """What ``lower`` returns, without comments and without how dimensions are split."""

    _known: dict[Hashable, tuple[Steps, Program]] = field(default_factory=dict)

    def lower(self, graph: Graph) -> Program:
        """Lower every kernel of ``graph``; raises what ``lower`` raises, but lists no alternatives."""
        pattern, steps = _pattern(graph)
        known = self._known.get(pattern)
        if known is not None:
            return in_panels(_resized(known[1], dict(zip(known[0], steps, strict=True))))
        program = lowered_by_rows(graph)
        if _in_steps(program):
            program = _resized(program, dict(zip(steps, steps, strict=True)))
            self._known[pattern] = steps, program
        return in_panels(program)


def _pattern(graph: Graph) -> tuple[Hashable, Steps]:
    """``graph`` with a number for each step, the same for the same; and the steps in the order of their numbers."""
    numbers = {1: 0}
    nodes: list[Hashable] = []
    for node in graph.nodes:
        expr = node.expr
        splits = tuple(
            [
                (axis, *[numbers.setdefault(split_step(factors, level), len(numbers)) for level in range(len(factors))])
                for axis, factors in expr.splits
            ]
        )
        nodes.append((expr.op, expr.operands, expr.output, splits, expr.order, node.operands))
    return (graph.inputs, tuple(nodes), graph.outputs), tuple(numbers)


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
    return Buffer(buffer.name, dims, buffer.role, buffer.leaf)


def _statements(body: Sequence[Statement], steps: Mapping[int, int]) -> tuple[Statement, ...]:
    return tuple([_loop(s, steps) if isinstance(s, For) else s for s in body if not isinstance(s, Comment)])


def _loop(loop: For, steps: Mapping[int, int]) -> For:
    limit = None if loop.limit is None else steps[loop.limit]
    body = _statements(loop.body, steps)
    return For(loop.variable, loop.extent, steps[loop.step], limit, loop.outer, body, loop.parallel, loop.reduces)
