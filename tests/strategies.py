"""Hypothesis strategies: any well-formed expression, and well-typed components with shapes they can be called with."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hypothesis import strategies as st

from ilang_eq.lang.check import MAX_TILE
from ilang_eq.lang.component import Component, I, Leaf
from ilang_eq.lang.expr import Access, Expr, Init, Literal, Loop, Operand, OrderItem, Stage
from ilang_eq.lang.ops import OPS

BINARY = tuple(op.name for op in OPS.values() if op.binary is not None)
REDUCIBLE = tuple(op.name for op in OPS.values() if op.reducible)
MAX_RANK = 4

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """A component, shapes to call it with, and the shapes that come out."""

    component: Component
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]


@st.composite
def exprs(draw: st.DrawFn) -> Expr:
    """Any well-formed expression: diagonals, numbers, splits and orders included."""
    letters = draw(st.sampled_from(["ijkl", "abz", "qrstuv"]))
    patterns = st.text(letters, max_size=4).map(Access)
    numbers = st.floats(allow_nan=False, allow_infinity=False).map(Literal)
    operands: tuple[Operand, ...] = tuple(draw(st.lists(patterns | numbers, min_size=1, max_size=2)))
    axes = "".join(dict.fromkeys("".join(o.axes for o in operands if isinstance(o, Access))))
    output = "".join(draw(st.permutations(axes)))
    if len(operands) == 1 and draw(st.booleans()):
        output = output[: draw(st.integers(0, len(output)))]
    reduces = len(output) < len(axes)
    names = REDUCIBLE if reduces else tuple(OPS) if len(operands) == 1 else BINARY
    expr = Expr(draw(st.sampled_from(names)), operands, output)
    return draw(schedules(expr)) if draw(st.booleans()) else expr


@st.composite
def schedules(draw: st.DrawFn, expr: Expr) -> Expr:
    """``expr`` with splits of some axes and an order that lists every loop, or none."""
    factors = st.lists(st.sampled_from((1, 2, 3, 16, 1000)), min_size=1, max_size=3)
    factors = factors.filter(lambda found: math.prod(found) <= MAX_TILE)
    split = draw(st.lists(st.sampled_from(expr.axes), unique=True)) if expr.axes else []
    splits = tuple((axis, tuple(draw(factors))) for axis in split)
    expr = Expr(expr.op, expr.operands, expr.output, splits)
    if draw(st.booleans()):
        return expr
    loops = [Loop(axis, level) for axis in expr.axes for level in range(len(expr.factors[axis]) + 1)]
    order: list[OrderItem] = list(draw(st.permutations(loops)))
    for k, operand in enumerate(expr.operands):
        if isinstance(operand, Access) and draw(st.booleans()):
            order.insert(draw(st.integers(0, len(order))), Stage(k))
    if expr.reduced and draw(st.booleans()):
        inside = max((order.index(loop) + 1 for loop in loops if loop.axis in expr.output), default=0)
        order.insert(draw(st.integers(inside, len(order))), Init())
    return Expr(expr.op, expr.operands, expr.output, splits, tuple(order))


@st.composite
def components(draw: st.DrawFn, extents: tuple[int, ...] = (1, 2, 3, 4), depth: int = 4) -> Typed:
    """A random component without schedules, every combinator among them, and shapes that fit it."""
    shapes = st.lists(st.sampled_from(extents), max_size=2).map(tuple)
    inputs = draw(st.lists(shapes, min_size=1, max_size=3))
    component, outputs = draw(_on(tuple(inputs), depth))
    return Typed(component, tuple(inputs), outputs)


@st.composite
def _on(draw: st.DrawFn, inputs: tuple[Shape, ...], depth: int) -> tuple[Component, tuple[Shape, ...]]:
    """A component with exactly these inputs, and what comes out of it."""
    if depth == 0 or (len(inputs) <= 2 and draw(st.integers(0, 3)) == 0):
        return draw(_simple(inputs))
    grow = _chain(inputs, depth), _compose(inputs, depth), _fanout(inputs, depth)
    wide = (_pair(inputs, depth), _swap(inputs, depth)) if len(inputs) > 1 else ()
    return draw(st.one_of(*grow, *wide))


@st.composite
def _simple(draw: st.DrawFn, inputs: tuple[Shape, ...]) -> tuple[Component, tuple[Shape, ...]]:
    """Leaves and identities side by side."""
    first, rest = inputs[:1], inputs[1:]
    if rest and len(first[0]) + len(rest[0]) <= MAX_RANK and draw(st.booleans()):
        first, rest = inputs[:2], inputs[2:]
    component, outputs = (I, first) if len(first) == 1 and draw(st.integers(0, 5)) == 0 else draw(_leaf(first))
    if not rest:
        return component, outputs
    other, more = draw(_simple(rest))
    return component | other, outputs + more


@st.composite
def _leaf(draw: st.DrawFn, inputs: tuple[Shape, ...]) -> tuple[Component, tuple[Shape, ...]]:
    """An expression on one or two tensors; axes of equal extent may be shared, within one operand too."""
    known: dict[str, int] = {}
    operands: list[Operand] = [draw(_access(shape, known)) for shape in inputs]
    if len(inputs) == 1 and draw(st.integers(0, 3)) == 0:
        number = Literal(draw(st.sampled_from((0.0, 0.5, -1.0, 2.0, 1e-3))))
        operands.insert(draw(st.integers(0, 1)), number)
    output = "".join(draw(st.permutations(list(known))))
    if len(operands) == 1 and draw(st.booleans()):
        output = output[: draw(st.integers(0, len(output)))]
    reduces = len(output) < len(known)
    names = REDUCIBLE if reduces else tuple(OPS) if len(operands) == 1 else BINARY
    expr = Expr(draw(st.sampled_from(names)), tuple(operands), output)
    return Leaf(expr), (tuple(known[axis] for axis in output),)


@st.composite
def _access(draw: st.DrawFn, shape: Shape, known: dict[str, int]) -> Access:
    """Names for a tensor's dimensions; ``known`` collects the extents of the axes."""
    axes = ""
    for extent in shape:
        fresh = "ijklmnop"[len(known)]
        shared = [axis for axis, n in known.items() if n == extent]
        preferred = [axis for axis in shared if axis not in axes]
        axis = draw(st.sampled_from([*preferred, fresh, *shared]))
        known[axis] = extent
        axes += axis
    return Access(axes)


@st.composite
def _fed(
    draw: st.DrawFn, inputs: tuple[Shape, ...], depth: int
) -> tuple[Component, Component, tuple[Shape, ...], tuple[Shape, ...]]:
    """A component, one it feeds, its spare outputs and the other's outputs."""
    cut = draw(st.integers(1, len(inputs)))
    first, made = draw(_on(inputs[:cut], depth - 1))
    fed = len(made) if cut < len(inputs) else draw(st.integers(1, len(made)))
    second, results = draw(_on(made[:fed] + inputs[cut:], depth - 1))
    return first, second, made[fed:], results


def _chain(inputs: tuple[Shape, ...], depth: int) -> st.SearchStrategy[tuple[Component, tuple[Shape, ...]]]:
    return _fed(inputs, depth).map(lambda f: (f[0] >> f[1], f[2] + f[3]))


def _compose(inputs: tuple[Shape, ...], depth: int) -> st.SearchStrategy[tuple[Component, tuple[Shape, ...]]]:
    return _fed(inputs, depth).map(lambda f: (f[1] << f[0], f[3] + f[2]))


@st.composite
def _fanout(draw: st.DrawFn, inputs: tuple[Shape, ...], depth: int) -> tuple[Component, tuple[Shape, ...]]:
    left, made = draw(_on(inputs, depth - 1))
    right, more = draw(_on(inputs[: draw(st.integers(1, len(inputs)))], depth - 1))
    return (left & right, made + more) if draw(st.booleans()) else (right & left, more + made)


@st.composite
def _pair(draw: st.DrawFn, inputs: tuple[Shape, ...], depth: int) -> tuple[Component, tuple[Shape, ...]]:
    cut = draw(st.integers(1, len(inputs) - 1))
    left, made = draw(_on(inputs[:cut], depth - 1))
    right, more = draw(_on(inputs[cut:], depth - 1))
    return left | right, made + more


@st.composite
def _swap(draw: st.DrawFn, inputs: tuple[Shape, ...], depth: int) -> tuple[Component, tuple[Shape, ...]]:
    of, made = draw(_on(inputs[1::-1] + inputs[2:], depth - 1))
    return ~of, made
