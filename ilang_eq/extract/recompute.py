"""Twins: what several readers share may also be computed once for each, under schedules of its own.

An e-class has one schedule in a choice. Where two readers want a pointwise value under different loops, say the
exponentials of a softmax inside the running sum and again in the final write, only computing it twice will do.
``with_twins`` adds a second class with the same nodes for every such value; readers choose between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ilang_eq.lang.graph import Input
from ilang_eq.rewrites.space import Apply, ClassId, EClass, ENode, Nest, Reduce, Repair, Space, Staging, Variant


def with_twins(space: Space) -> Space:
    """``space`` with a twin of every pointwise class that several classes read."""
    for shared in _shared(space):
        readers = sorted({reader.of for reader in _readers(space, shared)})
        if len(readers) > 1:
            space = _add_twin(space, shared, frozenset(readers[1:]))
    return space


def _shared(space: Space) -> list[ClassId]:
    """Pointwise classes, readers before what they read, so that a twin's operands are seen as shared in turn."""
    outputs = {of for of, _ in space.outputs if not isinstance(of, Input)}
    order: dict[ClassId, None] = {}

    def visit(of: ClassId, path: frozenset[ClassId]) -> None:
        if of in order or of in path:
            return
        for node in space.classes[of].nodes:
            for operand in _operands(node):
                visit(operand, path | {of})
        order[of] = None

    for of in sorted(outputs):
        visit(of, frozenset())
    pointwise = [of for of in order if all(isinstance(node, Apply) for node in space.classes[of].nodes)]
    return [of for of in reversed(pointwise) if of not in outputs]


def _readers(space: Space, of: ClassId) -> Iterator[Variant]:
    for reader, eclass in space.classes.items():
        for number, node in enumerate(eclass.nodes):
            if of in _operands(node):
                yield Variant(reader, number)


def _operands(node: ENode) -> tuple[ClassId, ...]:
    match node:
        case Apply(_, operands):
            return operands
        case Reduce(_, _, operand):
            return (operand,)
        case _:
            return ()


def _add_twin(space: Space, shared: ClassId, readers: frozenset[ClassId]) -> Space:
    twin = max(space.classes) + 1
    classes = dict(space.classes)
    classes[twin] = classes[shared]
    nests = dict(space.nests)
    stagings = list(space.stagings)
    repairs = list(space.repairs)
    for number in range(len(classes[shared].nodes)):
        of, copy = Variant(shared, number), Variant(twin, number)
        _copy_variant(space, of, copy, nests, stagings, repairs)
    for variant in sorted(v for v in _readers(space, shared) if v.of in readers):
        eclass = classes[variant.of]
        copy = Variant(variant.of, len(eclass.nodes))
        classes[variant.of] = EClass(eclass.axes, (*eclass.nodes, _rewired(eclass.nodes[variant.node], shared, twin)))
        _copy_variant(space, variant, copy, nests, stagings, repairs, shared, twin)
    return replace(
        space, classes=classes, nests=nests, stagings=tuple(sorted(stagings)), repairs=tuple(sorted(repairs))
    )


def _rewired(node: ENode, old: ClassId, new: ClassId) -> ENode:
    match node:
        case Apply(op, operands):
            return Apply(op, tuple(new if operand == old else operand for operand in operands))
        case Reduce(op, axes, operand):
            return Reduce(op, axes, new if operand == old else operand)
        case _:
            return node


def _copy_variant(
    space: Space,
    of: Variant,
    copy: Variant,
    nests: dict[Variant, tuple[Nest, ...]],
    stagings: list[Staging],
    repairs: list[Repair],
    old: ClassId | None = None,
    new: ClassId | None = None,
) -> None:
    """Give ``copy`` everything that is known of ``of``; where it reads class ``old``, it reads ``new``."""
    nests[copy] = space.nests[of]
    for staging in space.stagings:
        if staging.consumer == of:
            producer = staging.producer
            if new is not None and producer.of == old:
                producer = Variant(new, producer.node)
            stagings.append(replace(staging, consumer=copy, producer=producer))
    for repair in space.repairs:
        if repair.accumulator == of:
            repairs.append(replace(repair, accumulator=copy))
