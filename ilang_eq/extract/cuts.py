"""Where a large space is cut: at values that are all that passes between two parts of it.

A value whose cone nothing else looks into separates the space: put in memory, it is an output of the piece below and
an input of the piece above. Of such values the smallest are cut, until every piece is small enough; or those that sums
of products read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from ilang_eq.extract.restriction import restricted
from ilang_eq.lang.graph import Input
from ilang_eq.rewrites.decode import constant_classes, is_computed, is_copy, operands
from ilang_eq.rewrites.space import (
    Apply,
    AxisId,
    ClassId,
    EClass,
    ENode,
    Number,
    Read,
    Reduce,
    Space,
    Staging,
    Variant,
    View,
)

Classes = Mapping[ClassId, EClass]


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a space, with classes, axes and inputs numbered anew.

    Args:
        space: the piece; a cut below it is one more input.
        extents: the size of every axis, under the keys of ``space.extents``.
        sources: what each input of the piece is: an input of the whole, or the class that was cut.
        result: the class it computes, None for the piece with the component's outputs.
    """

    space: Space
    extents: Mapping[tuple[int, int], int]
    sources: tuple[Input | ClassId, ...]
    result: ClassId | None


def split(space: Space, sizes: Sequence[int], limit: int) -> list[Segment]:
    """``space`` in pieces, producers first."""
    cuts: set[ClassId] = set()
    roots = [of for of, _ in space.outputs if not isinstance(of, Input)]
    while len(_decisive(_own(space), _cone(_own(space), roots, cuts))) > limit:
        cut = _best_cut(space, sizes, cuts, limit, frozenset(roots))
        if cut is None:
            break
        cuts.add(cut)
        space = _without_bypass(space, cut)
    return _between(space, sizes, cuts)


def between_products(space: Space, sizes: Sequence[int]) -> list[Segment]:
    """``space`` in pieces, producers first, cut before its sums of products; none if there is nothing to cut."""
    cuts = _product_cuts(space, sizes)
    return _between(_own_and_copies(space), sizes, cuts) if cuts else []


def _product_cuts(space: Space, sizes: Sequence[int]) -> set[ClassId]:
    def size(c: ClassId) -> int:
        return math.prod(sizes[a] for a in space.classes[c].axes)

    first = {c: eclass.nodes[0] for c, eclass in space.classes.items() if eclass.nodes}
    read = max((size(c) for c, node in first.items() if isinstance(node, Read)), default=0)
    factors = {
        factor
        for node in first.values()
        if isinstance(node, Reduce) and node.op == "add" and isinstance(product := first.get(node.operand), Apply)
        for factor in (product.operands if product.op == "mul" else ())
        if size(factor) < size(node.operand)
    }
    roots = {of for of, _ in space.outputs}
    return {c for c in factors if isinstance(first.get(c), Apply | Reduce) and c not in roots and size(c) <= read}


def _between(space: Space, sizes: Sequence[int], cuts: set[ClassId]) -> list[Segment]:
    """The pieces that ``cuts`` leave, producers first."""
    roots = [of for of, _ in space.outputs if not isinstance(of, Input)]
    below = [_segment(space, sizes, [c], cuts - {c}, c) for c in sorted(cuts)]
    return [*below, _segment(space, sizes, roots, cuts, None)]


def _best_cut(
    space: Space, sizes: Sequence[int], cuts: set[ClassId], limit: int, roots: frozenset[ClassId]
) -> ClassId | None:
    """The smallest value, and of equal ones that with the largest cone, whose cone fits a piece and is nobody else's.

    Only the component's own expressions count, the first node of every class: others that look inside are dropped.
    """
    own = _own(space)
    options = []
    needed = _cone(own, roots, cuts)
    for c in _computed(own, needed):
        if c in cuts or c in roots:
            continue
        cone = _cone(own, [c], cuts)
        inner = set(_computed(own, cone)) - {c}
        outside = needed - cone
        if not inner or len(_decisive(own, inner)) >= limit or any(inner & _operands_of(own[x]) for x in outside):
            continue
        options.append((math.prod(sizes[a] for a in own[c].axes), -len(inner), c))
    return min(options)[2] if options else None


def _without_bypass(space: Space, cut: ClassId) -> Space:
    """``space`` without the nodes that need what ``cut`` is made of, but not ``cut`` itself."""
    roots = [of for of, _ in space.outputs if not isinstance(of, Input)]
    above = _cone(_own(space), roots, {cut})
    inside = _cone(space.classes, [cut], set())
    hidden = {c for c in inside if c not in above}
    left = {c: set(range(len(eclass.nodes))) for c, eclass in space.classes.items()}
    while True:
        lost = [
            (c, n)
            for c, nodes in left.items()
            if c not in inside
            for n in nodes
            if not hidden.isdisjoint(operands(space.classes[c].nodes[n]))
        ]
        if not lost:
            return restricted(space, lambda c, n: n in left[c])
        for c, n in lost:
            left[c].remove(n)
        hidden |= {c for c, nodes in left.items() if not nodes}


def without_copies(space: Space) -> Space:
    """``space`` without the nodes that read a copy of an argument: each doubles the ways to compute a product."""
    return restricted(
        space, lambda c, n: n == 0 or not any(is_copy(space, x) for x in operands(space.classes[c].nodes[n]))
    )


def _own(space: Space) -> Classes:
    """Only what the component itself says: the first node of every class."""
    return {c: EClass(eclass.axes, eclass.nodes[:1]) for c, eclass in space.classes.items()}


def _own_and_copies(space: Space) -> Space:
    """What the component itself says, and the same with arguments packed."""

    def keep(c: ClassId, n: int) -> bool:
        mine = [x for x in operands(space.classes[c].nodes[n]) if not is_copy(space, x)]
        own = [x for x in operands(space.classes[c].nodes[0]) if is_computed(space.classes[x])]
        return n == 0 or {x for x in mine if is_computed(space.classes[x])} <= set(own)

    return restricted(space, keep)


def _cone(classes: Classes, roots: Iterable[ClassId], cuts: set[ClassId]) -> set[ClassId]:
    """What ``roots`` depend on; a cut is included, what lies below it is not."""
    found: set[ClassId] = set()
    stack = list(roots)
    start = set(stack)
    while stack:
        c = stack.pop()
        if c not in found:
            found.add(c)
            if c not in cuts or c in start:
                stack.extend(_operands_of(classes[c]))
    return found


def _computed(classes: Classes, among: Iterable[ClassId]) -> list[ClassId]:
    return [c for c in sorted(among) if is_computed(classes[c])]


def _decisive(classes: Classes, among: Iterable[ClassId]) -> list[ClassId]:
    """Those of ``among`` that take a decision of their own: a pointwise one that one other reads goes with that."""
    readers = Counter(x for eclass in classes.values() for x in _operands_of(eclass))
    computed = _computed(classes, among)
    return [c for c in computed if readers[c] != 1 or any(isinstance(n, Reduce) for n in classes[c].nodes)]


def _operands_of(eclass: EClass) -> set[ClassId]:
    return {operand for node in eclass.nodes for operand in operands(node)}


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The new numbers of a piece's classes, axes and inputs; all keep their order."""

    classes: Mapping[ClassId, int]
    axes: Mapping[AxisId, int]
    inputs: Mapping[int, int]
    cuts: Mapping[ClassId, int]

    def variant(self, of: Variant) -> Variant:
        return Variant(self.classes[of.of], of.node)

    def along(self, axes: Iterable[AxisId]) -> tuple[AxisId, ...]:
        return tuple(self.axes[a] for a in axes)


def _segment(
    space: Space, sizes: Sequence[int], roots: Sequence[ClassId], cuts: set[ClassId], result: ClassId | None
) -> Segment:
    inside = sorted(_cone(space.classes, roots, cuts))
    used = sorted({n.input for c in inside for n in space.classes[c].nodes if isinstance(n, Read) and c not in cuts})
    used += sorted({of.index for of, _ in space.outputs if isinstance(of, Input) and result is None} - set(used))
    axes = sorted({a for c in inside for a in _all_axes(space.classes[c])})
    number = _Numbers(
        {c: n for n, c in enumerate(inside)},
        {a: n for n, a in enumerate(axes)},
        {k: n for n, k in enumerate(used)},
        {c: len(used) + n for n, c in enumerate(c for c in inside if c in cuts)},
    )
    if result is None:
        outputs = tuple(
            (Input(number.inputs[of.index]) if isinstance(of, Input) else number.classes[of], number.along(along))
            for of, along in space.outputs
        )
    else:
        outputs = ((number.classes[result], number.along(space.classes[result].axes)),)
    kept = frozenset(c for c in inside if c not in cuts)
    piece = Space(
        {number.classes[c]: _class(space, c, cuts, number) for c in inside},
        outputs,
        tuple((n, 0) for n in range(len(axes))),
        {
            number.variant(v): tuple(number.along(nest) for nest in nests)
            for v, nests in space.nests.items()
            if v.of in kept
        },
        tuple(_staging(s, number) for s in space.stagings if s.consumer.of in kept and s.producer.of in kept),
        tuple(
            replace(r, accumulator=number.variant(r.accumulator), statistic=number.classes[r.statistic])
            for r in space.repairs
            if {r.accumulator.of, r.statistic} <= kept
        ),
        frozenset(number.axes[a] for a in space.splittable if a in number.axes),
        frozenset(number.inputs[k] for k in used if k in space.constants)
        | {number.cuts[c] for c in cuts & constant_classes(space) & set(inside)},
    )
    sources = (*(Input(k) for k in used), *(c for c in inside if c in cuts))
    return Segment(piece, {(n, 0): sizes[a] for n, a in enumerate(axes)}, sources, result)


def _all_axes(eclass: EClass) -> set[AxisId]:
    reduced = {a for n in eclass.nodes if isinstance(n, Reduce) for a in n.axes}
    read = {a for n in eclass.nodes if isinstance(n, View) for a in n.source}
    return {*eclass.axes, *reduced, *read}


def _class(space: Space, c: ClassId, cuts: set[ClassId], number: _Numbers) -> EClass:
    eclass = space.classes[c]
    axes = number.along(eclass.axes)
    if c in cuts:
        return EClass(axes, (Read(number.cuts[c], axes),))
    return EClass(axes, tuple(_node(node, number) for node in eclass.nodes))


def _node(node: ENode, number: _Numbers) -> ENode:
    match node:
        case Read(index, axes):
            return Read(number.inputs[index], number.along(axes))
        case Number():
            return node
        case Apply(op, operands):
            return Apply(op, tuple(number.classes[operand] for operand in operands))
        case Reduce(op, axes, operand):
            return Reduce(op, number.along(axes), number.classes[operand])
        case View(operand, source, axes):
            return View(number.classes[operand], number.along(source), number.along(axes))
        case _:
            assert_never(node)


def _staging(staging: Staging, number: _Numbers) -> Staging:
    return Staging(
        number.variant(staging.consumer),
        number.along(staging.nest),
        staging.operand,
        staging.site,
        staging.inline,
        number.variant(staging.producer),
        number.along(staging.producer_nest),
    )
