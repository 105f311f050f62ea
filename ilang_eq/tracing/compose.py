"""The expressions of a builder as a component: axes that are always read together become one, and get letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ilang_eq.lang.component import Component
from ilang_eq.lang.expr import Access, Expr, Literal, Operand
from ilang_eq.lang.graph import Graph, Input, Node, Source, Value
from ilang_eq.lang.unwiring import unwire
from ilang_eq.tracing.axes import Axes
from ilang_eq.tracing.build import Applied, Builder, Inexpressible, View
from ilang_eq.tracing.extents import Extent, product

_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"

Pattern: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Expression:
    """An expression over finest axes; a literal has an empty pattern."""

    op: str
    operands: tuple[Source, ...]
    patterns: tuple[Pattern, ...]
    output: Pattern

    def all_patterns(self) -> Iterator[Pattern]:
        """Every pattern that has axes."""
        yield from self.patterns
        yield self.output


@dataclass(frozen=True, slots=True)
class Composed:
    """A component, and how torch tensors are seen as its inputs and output.

    Args:
        component: what the expressions compute.
        inputs: for each of its inputs, the number of the builder's input.
        input_extents: for each of its inputs, the shape it is read in, a reshape of the tensor's.
        output_extents: the shape of its output, a reshape of the tensor's.
        work: for each expression, the extents of its axes: it takes as many operations as their product.
    """

    component: Component
    inputs: tuple[int, ...]
    input_extents: tuple[tuple[Extent, ...], ...]
    output_extents: tuple[Extent, ...]
    work: tuple[Extent, ...]


def compose(builder: Builder, result: View) -> Composed:
    """The component that computes ``result``.

    Raises:
        Inexpressible: the result is no expression's own value, broadcast, or needs more axes than there are letters.
    """
    if not isinstance(result.source, Value):
        raise Inexpressible("a view alone needs no expression")
    axes = builder.axes
    order = _live(builder.expressions, result.source.node)
    stored: dict[Source, Pattern] = {Input(k): axes.parts(found) for k, found in enumerate(builder.inputs)}
    stored |= {Value(n): axes.parts(builder.expressions[n].output) for n in order}
    seen = axes.parts([axis for dim in result.dims for axis in dim])
    if sorted(seen) != sorted(stored[result.source]):
        raise Inexpressible("the result repeats elements along a broadcast dimension")
    stored[result.source] = seen
    expressions = [_resolved(axes, builder.expressions[n], stored, Value(n)) for n in order]
    groups = _merged(axes, expressions)
    return _composed(axes, expressions, order, stored, groups)


def _live(expressions: Sequence[Applied], last: int) -> list[int]:
    """The expressions that ``last`` needs, producers first."""
    needed = {last}
    for n in range(last, -1, -1):
        if n in needed:
            needed.update(s.node for s in expressions[n].operands if isinstance(s, Value))
    return sorted(needed)


def _resolved(axes: Axes, applied: Applied, stored: Mapping[Source, Pattern], value: Value) -> _Expression:
    """An expression whose operands are read in the order in which they are stored."""
    patterns: list[Pattern] = []
    for source, pairs in zip(applied.operands, applied.reads, strict=True):
        read = dict(zip(axes.parts([a for a, _ in pairs]), axes.parts([b for _, b in pairs]), strict=True))
        patterns.append(() if isinstance(source, Literal) else tuple(read[leaf] for leaf in stored[source]))
    return _Expression(applied.op, applied.operands, tuple(patterns), stored[value])


def _merged(axes: Axes, expressions: Sequence[_Expression]) -> dict[int, tuple[int, ...]]:
    """Classes of axes that are read as one: the first of each run, with the classes of the run.

    Two classes merge if in every pattern the second follows the first, and within an expression always the same axis
    the same axis: then they are one axis that was split for nothing.
    """
    runs: dict[int, tuple[int, ...]] = {
        axes.root(a): (axes.root(a),) for e in expressions for p in e.all_patterns() for a in p
    }
    follows = _followers(axes, expressions)
    for first in list(runs):
        while first in runs:
            second = follows.get(runs[first][-1])
            if second is None or second == first or second not in runs:
                break
            runs[first] += runs.pop(second)
    return runs


def _followers(axes: Axes, expressions: Sequence[_Expression]) -> dict[int, int]:
    """The class that always comes right after a class, and is always right after it."""
    after: dict[int, set[int | None]] = {}
    before: dict[int, set[int | None]] = {}
    for expression in expressions:
        beside: dict[int, set[int | None]] = {}
        ahead: dict[int, set[int | None]] = {}
        for pattern in expression.all_patterns():
            for a, b in zip((None, *pattern), (*pattern, None), strict=True):
                if a is not None:
                    beside.setdefault(a, set()).add(b)
                if b is not None:
                    ahead.setdefault(b, set()).add(a)
        for found, classes in ((beside, after), (ahead, before)):
            for axis, near in found.items():
                one = next(iter(near)) if len(near) == 1 else None
                classes.setdefault(axes.root(axis), set()).add(None if one is None else axes.root(one))
    pairs = {a: next(iter(near)) for a, near in after.items() if len(near) == 1}
    return {a: b for a, b in pairs.items() if b is not None and a != b and before[b] == {a}}


def _composed(
    axes: Axes,
    expressions: Sequence[_Expression],
    order: Sequence[int],
    stored: Mapping[Source, Pattern],
    groups: Mapping[int, tuple[int, ...]],
) -> Composed:
    heads = {root: product(axes.extent(c) for c in run) for root, run in groups.items()}

    def cut(pattern: Pattern) -> Pattern:
        return tuple(axis for axis in pattern if axes.root(axis) in heads)

    def shape(pattern: Pattern) -> tuple[Extent, ...]:
        return tuple(heads[axes.root(axis)] for axis in cut(pattern))

    read = dict.fromkeys(s.index for e in expressions for s in e.operands if isinstance(s, Input))
    renumber: dict[Source, Source] = {Input(old): Input(new) for new, old in enumerate(read)}
    renumber |= {Value(old): Value(new) for new, old in enumerate(order)}
    preferred = dict(zip(heads, _LETTERS, strict=False))
    nodes = tuple(
        Node(_expr(axes, e, cut, preferred), tuple(renumber.get(s, s) for s in e.operands)) for e in expressions
    )
    return Composed(
        _component(Graph(len(read), nodes, (Value(len(nodes) - 1),))),
        tuple(read),
        tuple(shape(stored[Input(k)]) for k in read),
        shape(expressions[-1].output),
        tuple(product(shape(tuple(dict.fromkeys(a for p in e.all_patterns() for a in p)))) for e in expressions),
    )


@lru_cache(maxsize=1024)
def _component(graph: Graph) -> Component:
    """The text of a graph; equal layers ask for it again and again."""
    return unwire(graph)


def _expr(axes: Axes, expression: _Expression, cut: Callable[[Pattern], Pattern], preferred: Mapping[int, str]) -> Expr:
    """An expression in letters: a class has the same letter everywhere, where an expression has only one of it."""
    names: dict[int, str] = {}
    for axis in dict.fromkeys(a for p in expression.all_patterns() for a in cut(p)):
        wanted = preferred.get(axes.root(axis), "")
        taken = set(names.values())
        free = [letter for letter in (wanted, *_LETTERS) if letter and letter not in taken]
        if not free:
            raise Inexpressible(f"an expression of more than {len(_LETTERS)} axes")
        names[axis] = free[0]
    operands: tuple[Operand, ...] = tuple(
        source if isinstance(source, Literal) else Access("".join(names[a] for a in cut(pattern)))
        for source, pattern in zip(expression.operands, expression.patterns, strict=True)
    )
    return Expr(expression.op, operands, "".join(names[a] for a in cut(expression.output)))
