"""What a graph means, in float64 NumPy: the oracle that kernels are tested against. Schedules are ignored.

Node by node, each value dropped after its last reader. An operand becomes a view with one dimension for each axis of
the expression, of extent 1 where the operand lacks the axis; NumPy's broadcasting does the rest. A reduction over a
pointwise expression that nobody else reads is computed block by block along the output, so that the product inside a
matrix multiplication never exists whole: each element is still reduced in one go, by the same operations.

Arrays that come in are never written to; arrays that go out own their data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import assert_never

import numpy as np
from numpy.typing import ArrayLike

from ilang_eq.errors import ArrayError
from ilang_eq.lang.expr import Access, Expr, Literal, Operand
from ilang_eq.lang.graph import Graph, Input, Node, Source, Value
from ilang_eq.lang.ops import OPS, Array
from ilang_eq.lang.shapes import Dimension, Shapes, infer

BLOCK = 1 << 18
"""Elements of a reduced pointwise expression that exist at a time: 2 MB in float64."""


def interpret(graph: Graph, arrays: Sequence[ArrayLike]) -> tuple[Array, ...]:
    """The graph's outputs for these inputs, in float64.

    Raises:
        ArrayError: too few or too many arrays, or one is not numeric.
        ShapeError: ranks or extents contradict each other.
    """
    if len(arrays) != graph.inputs:
        raise ArrayError(f"{len(arrays)} arrays given", expected=f"{graph.inputs}, one an input")
    inputs = [_numeric(array, k) for k, array in enumerate(arrays)]
    shapes = infer(graph)
    extents = shapes.bind([array.shape for array in inputs])
    with np.errstate(all="ignore"):
        return _run(graph, inputs, shapes, extents)


def _numeric(array: ArrayLike, index: int) -> Array:
    try:
        found = np.asarray(array)
    except ValueError as error:
        raise ArrayError(f"argument {index} is no array: {error}", expected="numbers nested to one shape") from error
    if found.dtype.kind not in "biuf":
        raise ArrayError(f"argument {index} has dtype {found.dtype}", expected="real numbers")
    return found.astype(np.float64, copy=False)


def _run(graph: Graph, inputs: Sequence[Array], shapes: Shapes, extents: Mapping[Dimension, int]) -> tuple[Array, ...]:
    bodies = _bodies(graph)
    inner = set(bodies.values())
    unread = Counter(s for node in graph.nodes for s in node.operands) + Counter[Source](graph.outputs)
    values: dict[Source, Array] = {Input(k): array for k, array in enumerate(inputs)}
    for n in graph.order():
        if n in inner:
            continue
        node = graph.nodes[n]
        body = graph.nodes[bodies[n]] if n in bodies else None
        sizes = [extents[shapes.extent(n, axis)] for axis in node.expr.axes]
        values[Value(n)] = _compute(node, body, values, sizes)
        for source in (body or node).operands:
            unread[source] -= 1
            if not unread[source]:
                values.pop(source, None)
    return tuple(np.array(values[wire]) for wire in graph.outputs)


def _bodies(graph: Graph) -> dict[int, int]:
    """For each reduction of a pointwise expression that nobody else reads: that expression's node."""
    reads = Counter(s for node in graph.nodes for s in node.operands) + Counter[Source](graph.outputs)
    bodies: dict[int, int] = {}
    for n, node in enumerate(graph.nodes):
        source, operand = node.operands[0], node.expr.operands[0]
        if not node.expr.reduced or not isinstance(source, Value) or not isinstance(operand, Access):
            continue
        diagonal = len(set(operand.axes)) < len(operand.axes)
        if reads[source] == 1 and not diagonal and not graph.nodes[source.node].expr.reduced:
            bodies[n] = source.node
    return bodies


def _compute(node: Node, body: Node | None, values: Mapping[Source, Array], sizes: Sequence[int]) -> Array:
    """One node's value. With a ``body``, the node reduces what that computes, in the node's names for the axes."""
    expr = node.expr
    made = expr if body is None else _renamed(body.expr, expr.operands[0])
    sources = (body or node).operands
    views = [_view(o, s, values, expr.axes) for o, s in zip(made.operands, sources, strict=True)]
    if not expr.reduced:
        return _pointwise(made, views)
    axes = tuple(range(len(expr.output), len(expr.axes)))
    op = OPS[expr.op]
    if body is None:
        return op.reduce(views[0], axes)
    result = np.empty(sizes[: len(expr.output)])
    for block in _blocks(sizes, len(expr.output)):
        parts = [_cut(view, block) for view in views]
        whole = np.broadcast_shapes(*(part.shape for part in parts))
        result[block] = op.reduce(np.broadcast_to(_pointwise(made, parts), whole), axes)
    return result


def _renamed(expr: Expr, reading: Operand) -> Expr:
    """A pointwise expression in the axis names of the operand that reads it."""
    if not isinstance(reading, Access):
        raise TypeError("a number reads nothing")
    names = str.maketrans(expr.output, reading.axes)
    operands = tuple(Access(o.axes.translate(names)) if isinstance(o, Access) else o for o in expr.operands)
    return Expr(expr.op, operands, reading.axes)


def _pointwise(expr: Expr, views: Sequence[Array]) -> Array:
    op = OPS[expr.op]
    return op.unary(views[0]) if len(views) == 1 else op.apply(views[0], views[1])


def _view(operand: Operand, source: Source, values: Mapping[Source, Array], axes: str) -> Array:
    """An operand with one dimension for each of ``axes``, of extent 1 where it has none; a number has no dimension."""
    match operand:
        case Literal(value):
            return np.asarray(value, dtype=np.float64)
        case Access(own):
            array, own = _diagonal(values[source], own)
            kept = [axis for axis in axes if axis in own]
            array = array.transpose([own.index(axis) for axis in kept])
            return array.reshape([array.shape[kept.index(axis)] if axis in kept else 1 for axis in axes])
        case other:
            assert_never(other)


def _diagonal(array: Array, axes: str) -> tuple[Array, str]:
    """A view that has each axis once: along a repeated axis, the elements where its positions agree."""
    while len(set(axes)) < len(axes):
        first, second = next((axes.index(a), k) for k, a in enumerate(axes) if axes.index(a) < k)
        array = np.diagonal(array, axis1=first, axis2=second)
        axes = axes[:first] + axes[first + 1 : second] + axes[second + 1 :] + axes[first]
    return array, axes


def _blocks(sizes: Sequence[int], kept: int) -> Iterator[tuple[slice, ...]]:
    """Slices of the first ``kept`` axes that cover them, with at most about BLOCK elements under each."""
    steps = list(sizes)
    for d in range(kept):
        total = math.prod(steps)
        if total > BLOCK:
            steps[d] = max(1, steps[d] * BLOCK // total)
    ranges = [range(0, size, max(1, step)) for size, step in zip(sizes[:kept], steps[:kept], strict=True)]
    for starts in product(*ranges):
        yield tuple(slice(start, start + step) for start, step in zip(starts, steps, strict=False))


def _cut(view: Array, block: Sequence[slice]) -> Array:
    """The part of a view under a block; where the view has extent 1, all of it."""
    if view.ndim == 0:
        return view
    return view[tuple(s if n > 1 else slice(None) for s, n in zip(block, view.shape, strict=False))]
