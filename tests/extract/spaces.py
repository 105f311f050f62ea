"""Spaces made by hand: the classes are written out, nests and stagings follow the rules of ``rewrites/space.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product

from ilang_eq.lang.graph import Input
from ilang_eq.rewrites.space import (
    Apply,
    AxisId,
    ClassId,
    EClass,
    ENode,
    Nest,
    Number,
    Read,
    Reduce,
    Repair,
    Space,
    Staging,
    Variant,
    View,
)

Outputs = Sequence[tuple[ClassId | Input, tuple[AxisId, ...]]]


def operands(node: ENode) -> tuple[ClassId, ...]:
    match node:
        case Apply():
            return node.operands
        case Reduce() | View():
            return (node.operand,)
        case Read() | Number():
            return ()


def make_space(
    nodes: Mapping[ClassId, Sequence[ENode]],
    outputs: Outputs,
    extents: Sequence[tuple[int, int]],
    repairs: Sequence[tuple[Variant, ClassId, str]] = (),
    depth: int = 3,
) -> Space:
    """The space of ``nodes`` (operands before readers): every nest up to ``depth`` loops, every legal staging."""
    axes: dict[ClassId, tuple[AxisId, ...]] = {}
    for c, found in nodes.items():
        axes[c] = _axes(found[0], axes)
    classes = {c: EClass(axes[c], tuple(found)) for c, found in nodes.items()}
    loops = {
        Variant(c, n): _loops(node, axes[c])
        for c, found in nodes.items()
        for n, node in enumerate(found)
        if isinstance(node, Apply | Reduce)
    }
    nests = {v: tuple(_nests(found, depth)) for v, found in loops.items()}
    return Space(
        classes,
        tuple(outputs),
        tuple(extents),
        nests,
        tuple(_stagings(classes, loops, nests)),
        tuple(Repair(v, c, kind) for v, c, kind in repairs),
        frozenset(range(len(extents))),
    )


def _axes(node: ENode, axes: Mapping[ClassId, tuple[AxisId, ...]]) -> tuple[AxisId, ...]:
    match node:
        case Read() | View():
            return tuple(sorted(set(node.axes)))
        case Number():
            return ()
        case Apply():
            return tuple(sorted({a for c in node.operands for a in axes[c]}))
        case Reduce():
            return tuple(a for a in axes[node.operand] if a not in node.axes)


def _loops(node: ENode, axes: tuple[AxisId, ...]) -> tuple[AxisId, ...]:
    return tuple(sorted({*axes, *(node.axes if isinstance(node, Reduce) else ())}))


def _nests(loops: tuple[AxisId, ...], depth: int) -> Iterator[Nest]:
    for length in range(min(depth, len(loops)) + 1):
        yield from permutations(loops, length)


def _stagings(
    classes: Mapping[ClassId, EClass],
    loops: Mapping[Variant, tuple[AxisId, ...]],
    nests: Mapping[Variant, tuple[Nest, ...]],
) -> Iterator[Staging]:
    for consumer in loops:
        for position, c in enumerate(operands(classes[consumer.of].nodes[consumer.node])):
            for producer in (v for v in loops if v.of == c):
                for nest, theirs in product(nests[consumer], nests[producer]):
                    for site in range(1, len(nest) + 1):
                        if set(nest[:site]) <= set(loops[producer]) and theirs[:site] == nest[:site]:
                            yield Staging(consumer, nest, position, site, False, producer, theirs)
                    node = classes[c].nodes[producer.node]
                    if isinstance(node, Apply) and loops[producer] == loops[consumer] and theirs == nest:
                        yield Staging(consumer, nest, position, len(nest), True, producer, theirs)


ROW, COLUMN, KEY, INNER = range(4)
"""Axes of attention: query rows, columns of the result, key rows, columns that the scores sum over."""


def attention() -> Space:
    """Attention with its division before the second product, or after it: classes as the algebra finds them."""
    nodes: dict[ClassId, tuple[ENode, ...]] = {
        0: (Read(0, (ROW, INNER)),),
        1: (Read(1, (KEY, INNER)),),
        2: (Apply("mul", (0, 1)),),
        3: (Reduce("add", (INNER,), 2),),
        4: (Reduce("max", (KEY,), 3),),
        5: (Apply("sub", (3, 4)),),
        6: (Apply("pow", (5,)),),
        7: (Reduce("add", (KEY,), 6),),
        8: (Apply("div", (6, 7)),),
        9: (Read(2, (KEY, COLUMN)),),
        10: (Apply("mul", (6, 9)),),
        11: (Apply("mul", (8, 9)), Apply("div", (10, 7))),
        12: (Reduce("add", (KEY,), 10),),
        13: (Reduce("add", (KEY,), 11), Apply("div", (12, 7))),
    }
    repairs = (
        (Variant(7, 0), 4, "max-shift"),
        (Variant(12, 0), 4, "max-shift"),
        (Variant(13, 0), 4, "max-shift"),
        (Variant(13, 0), 7, "divisor"),
    )
    return make_space(nodes, [(13, (ROW, COLUMN))], ((0, 0), (2, 1), (1, 0), (0, 1)), repairs)


def attention_extents(rows: int, keys: int, width: int) -> dict[tuple[int, int], int]:
    return {(0, 0): rows, (2, 1): width, (1, 0): keys, (0, 1): width}


def matmul() -> Space:
    nodes: dict[ClassId, tuple[ENode, ...]] = {
        0: (Read(0, (0, 2)),),
        1: (Read(1, (2, 1)),),
        2: (Apply("mul", (0, 1)),),
        3: (Reduce("add", (2,), 2),),
    }
    return make_space(nodes, [(3, (0, 1))], ((0, 0), (1, 1), (0, 1)))


def softmax() -> Space:
    nodes: dict[ClassId, tuple[ENode, ...]] = {
        0: (Read(0, (0, 1)),),
        1: (Reduce("max", (1,), 0),),
        2: (Apply("sub", (0, 1)),),
        3: (Apply("pow", (2,)),),
        4: (Reduce("add", (1,), 3),),
        5: (Apply("div", (3, 4)),),
    }
    return make_space(nodes, [(5, (0, 1))], ((0, 0), (0, 1)), [(Variant(4, 0), 1, "max-shift")])


def log_sum_exp() -> Space:
    nodes: dict[ClassId, tuple[ENode, ...]] = {
        0: (Read(0, (0, 1)),),
        1: (Reduce("max", (1,), 0),),
        2: (Apply("sub", (0, 1)),),
        3: (Apply("pow", (2,)),),
        4: (Reduce("add", (1,), 3),),
        5: (Apply("log", (4,)),),
        6: (Apply("add", (1, 5)),),
    }
    return make_space(nodes, [(6, (0,))], ((0, 0), (0, 1)), [(Variant(4, 0), 1, "max-shift")])


def scaled_sum() -> Space:
    """Σ_j c·x, or c·Σ_j x: one class, two variants, and a number."""
    nodes: dict[ClassId, tuple[ENode, ...]] = {
        0: (Read(0, (0, 1)),),
        1: (Number(0.5),),
        2: (Apply("mul", (1, 0)),),
        3: (Reduce("add", (1,), 0),),
        4: (Reduce("add", (1,), 2), Apply("mul", (1, 3))),
    }
    return make_space(nodes, [(4, (0,))], ((0, 0), (0, 1)))


def shared_exponential() -> Space:
    """e^x, returned in both layouts, and its sums over rows and columns, with x passed through."""
    nodes: dict[ClassId, tuple[ENode, ...]] = {
        0: (Read(0, (0, 1)),),
        1: (Apply("pow", (0,)),),
        2: (Reduce("add", (1,), 1),),
        3: (Reduce("add", (0,), 1),),
    }
    outputs: Outputs = [(2, (0,)), (Input(0), ()), (3, (1,)), (1, (0, 1)), (1, (1, 0)), (2, (0,))]
    return make_space(nodes, outputs, ((0, 0), (0, 1)))


def gram() -> Space:
    """Σ_k y_ik·y_jk with y = x + x: one intermediate under two names."""
    nodes: dict[ClassId, tuple[ENode, ...]] = {
        0: (Read(0, (0, 2)),),
        1: (Apply("add", (0, 0)),),
        2: (View(1, (0, 2), (1, 2)),),
        3: (Apply("mul", (1, 2)),),
        4: (Reduce("add", (2,), 3),),
    }
    return make_space(nodes, [(4, (0, 1))], ((0, 0), (0, 0), (0, 1)))


def product_of_two_matrices_and_a_vector() -> Space:
    """(A·B)·v or A·(B·v): Σ_j (Σ_k a_ik·b_kj)·v_j, or Σ_k a_ik·Σ_j b_kj·v_j."""
    nodes: dict[ClassId, tuple[ENode, ...]] = {
        0: (Read(0, (0, 2)),),
        1: (Read(1, (2, 1)),),
        2: (Read(2, (1,)),),
        3: (Apply("mul", (0, 1)),),
        4: (Reduce("add", (2,), 3),),
        5: (Apply("mul", (4, 2)),),
        6: (Apply("mul", (1, 2)),),
        7: (Reduce("add", (1,), 6),),
        8: (Apply("mul", (0, 7)),),
        9: (Reduce("add", (1,), 5), Reduce("add", (2,), 8)),
    }
    return make_space(nodes, [(9, (0,))], ((0, 0), (1, 1), (0, 1)))


def scaled_product() -> Space:
    """Σ_k (x_ik / s_i)·w_kj, or (Σ_k x_ik·w_kj) / s_i, with s_i = Σ_k x_ik."""
    nodes: dict[ClassId, tuple[ENode, ...]] = {
        0: (Read(0, (0, 2)),),
        1: (Read(1, (2, 1)),),
        2: (Reduce("add", (2,), 0),),
        3: (Apply("div", (0, 2)),),
        4: (Apply("mul", (3, 1)),),
        5: (Apply("mul", (0, 1)),),
        6: (Reduce("add", (2,), 5),),
        7: (Reduce("add", (2,), 4), Apply("div", (6, 2))),
    }
    return make_space(nodes, [(7, (0, 1))], ((0, 0), (1, 1), (0, 1)), [(Variant(7, 0), 2, "divisor")])
