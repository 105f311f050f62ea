"""What the algebra left, as facts for the schedule and online rules: one row per expression variant.

Variants, not classes, carry the facts: equal computations have different loops.

    (Class c)                  the term of class c
    (variant v t)              variant v computes t
    (unary t op x)  (binary t op x y)  (reduction v t op J x)  (number t value)
    (operand v k t)            operand k of v is t, and something computes t
    (loop v a)                 v runs over axis a;  (loops v A) is all of them, (reduced v J) those it reduces
    (pointwise v)              v reduces nothing
    (batch b)                  b lists the axes of every variant and every input, scalars aside
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ilang_eq.rewrites.decode import is_computed
from ilang_eq.rewrites.encode import node_text
from ilang_eq.rewrites.space import Apply, AxisId, ClassId, EClass, ENode, Number, Read, Reduce, Variant
from ilang_eq.rewrites.vocabulary import set_of, vec_of

DECLARATIONS = """
(constructor Class (i64) Term)
(relation variant (i64 Term))
(relation unary (Term String Term))
(relation binary (Term String Term Term))
(relation reduction (i64 Term String Axes Term))
(relation number (Term f64))
(relation operand (i64 i64 Term))
(relation loop (i64 i64))
(relation loops (i64 Axes))
(relation reduced (i64 Axes))
(relation pointwise (i64))
(relation batch (Dims))
"""


def variants(classes: Mapping[ClassId, EClass]) -> tuple[Variant, ...]:
    """The nodes that compute something, in order: variant v of the facts is the v-th."""
    return tuple(
        Variant(c, n)
        for c, found in classes.items()
        for n, node in enumerate(found.nodes)
        if isinstance(node, Apply | Reduce)
    )


def loops_of(node: ENode, classes: Mapping[ClassId, EClass], of: ClassId) -> frozenset[AxisId]:
    """The axes that a node of class ``of`` runs over."""
    return frozenset(classes[of].axes) | frozenset(node.axes if isinstance(node, Reduce) else ())


def batch_axes(classes: Mapping[ClassId, EClass]) -> tuple[AxisId, ...]:
    """The axes of every variant and every input, scalars aside: no two of their iterations share anything.

    But for one along the rows of an input that is reduced across its rows: iterations share pages, and to go through
    the rows in turn may be better.
    """
    nodes = [(c, node) for c, found in classes.items() for node in found.nodes]
    spanned = [loops for c, node in nodes if (loops := loops_of(node, classes, c))]
    reduced = frozenset(a for _, node in nodes if isinstance(node, Reduce) for a in node.axes)
    along = frozenset(n.axes[-1] for _, n in nodes if isinstance(n, Read) and reduced.intersection(n.axes[:-1]))
    return tuple(sorted(frozenset.intersection(*spanned) - reduced - along)) if spanned else ()


def facts(classes: Mapping[ClassId, EClass]) -> str:
    """The commands that assert every fact about ``classes``, in order of class and node."""
    lines = [line for c, found in classes.items() for line in _class_facts(c, found, classes)]
    computed = frozenset(variant.of for variant in variants(classes))
    for v, variant in enumerate(variants(classes)):
        lines.extend(_variant_facts(v, variant, classes, computed))
    lines.append(f"(batch {vec_of(batch_axes(classes))})")
    return "\n".join(lines)


def _term(c: ClassId) -> str:
    return f"(Class {c})"


def _class_facts(c: ClassId, found: EClass, classes: Mapping[ClassId, EClass]) -> Iterator[str]:
    match found.nodes[0]:
        case Apply(_, (x,)) if not is_computed(classes[x]):
            pass  # a copy of an input may have been merged into the input's class: this one stands for itself
        case node:
            yield f"(union {_term(c)} {node_text(node, _term)})"
    yield f"(set (axes {_term(c)}) {set_of(found.axes)})"
    match found.nodes[0]:
        case Number(value):
            yield f"(number {_term(c)} {value!r})"
        case _:
            pass


def _variant_facts(
    v: int, variant: Variant, classes: Mapping[ClassId, EClass], computed: frozenset[ClassId]
) -> Iterator[str]:
    node = classes[variant.of].nodes[variant.node]
    t = _term(variant.of)
    yield f"(variant {v} {t})"
    match node:
        case Apply(op, (x,)):
            yield f'(unary {t} "{op}" {_term(x)})'
        case Apply(op, (x, y)):
            yield f'(binary {t} "{op}" {_term(x)} {_term(y)})'
        case Reduce(op, axes, x):
            yield f'(reduction {v} {t} "{op}" {set_of(axes)} {_term(x)})'
        case _:
            raise AssertionError(f"{node} computes nothing")
    reads = (node.operand,) if isinstance(node, Reduce) else node.operands
    for k, x in enumerate(reads):
        if x in computed:
            yield f"(operand {v} {k} {_term(x)})"
    for axis in sorted(loops_of(node, classes, variant.of)):
        yield f"(loop {v} {axis})"
    yield f"(loops {v} {set_of(loops_of(node, classes, variant.of))})"
    yield f"(reduced {v} {set_of(node.axes if isinstance(node, Reduce) else ())})"
    if isinstance(node, Apply):
        yield f"(pointwise {v})"
