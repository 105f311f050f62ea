"""The invariants of a ``Space``."""

from __future__ import annotations

from collections.abc import Iterator

from ilang_eq.lang.graph import Input
from ilang_eq.rewrites.decode import is_computed, operands
from ilang_eq.rewrites.facts import loops_of
from ilang_eq.rewrites.space import Apply, AxisId, ENode, Number, Read, Reduce, Space, Staging, Variant, View


def check_space(space: Space) -> None:
    """Nothing, if ``space`` is as ``space.py`` says.

    Raises:
        AssertionError: an invariant does not hold; the message lists the places.
    """
    for check in (_classes, _outputs, _schedules):
        if faults := list(check(space)):
            raise AssertionError("\n".join(faults))


def _classes(space: Space) -> Iterator[str]:
    for c, found in space.classes.items():
        if found.axes != tuple(sorted(set(found.axes))):
            yield f"class {c}: axes {found.axes} are not sorted"
        if not found.nodes or len(set(found.nodes)) != len(found.nodes):
            yield f"class {c}: no nodes, or one twice"
        for node in found.nodes:
            if any(x >= c or x not in space.classes for x in operands(node)):
                yield f"class {c}: {node} reads a class that does not come before it"
            elif _axes(space, node) != set(found.axes):
                yield f"class {c}: {node} has axes {sorted(_axes(space, node))}, its class {found.axes}"


def _axes(space: Space, node: ENode) -> set[AxisId]:
    match node:
        case Read(_, axes) | View(_, _, axes):
            return set(axes)
        case Number():
            return set()
        case Apply(_, read):
            return {axis for x in read for axis in space.classes[x].axes}
        case Reduce(_, axes, x):
            return set(space.classes[x].axes) - set(axes)


def _outputs(space: Space) -> Iterator[str]:
    for wire, dims in space.outputs:
        if not isinstance(wire, Input):
            found = space.classes[wire]
            if tuple(sorted(dims)) != found.axes:
                yield f"output {wire} is returned over {dims}, its class has {found.axes}"
            if not is_computed(found):
                yield f"output {wire} is computed by nothing"


def _schedules(space: Space) -> Iterator[str]:
    for variant, nests in space.nests.items():
        loops = _loops(space, variant)
        if () not in nests:
            yield f"{variant} has no nest without tiles"
        for nest in nests:
            if len(set(nest)) != len(nest) or not loops >= set(nest) or not space.splittable >= set(nest):
                yield f"{variant}: {nest} is no nest of its loops {sorted(loops)}"
    for staging in space.stagings:
        yield from _staging(space, staging)
    for repair in space.repairs:
        if not isinstance(_node(space, repair.accumulator), Reduce):
            yield f"{repair}: the accumulator reduces nothing"


def _staging(space: Space, staging: Staging) -> Iterator[str]:
    consumer = _node(space, staging.consumer)
    if operands(consumer)[staging.operand] != staging.producer.of:
        yield f"{staging}: the producer does not compute that operand"
    if staging.nest not in space.nests[staging.consumer] or staging.producer_nest not in space.nests[staging.producer]:
        yield f"{staging}: unknown nest"
    if staging.inline:
        legal = staging.nest == staging.producer_nest
        legal &= _loops(space, staging.consumer) == _loops(space, staging.producer)
        legal &= isinstance(_node(space, staging.producer), Apply)
    else:
        above = staging.nest[: staging.site]
        legal = 1 <= staging.site <= len(staging.nest) and above == staging.producer_nest[: staging.site]
    if not legal:
        yield f"{staging}: not legal"


def _node(space: Space, variant: Variant) -> ENode:
    return space.classes[variant.of].nodes[variant.node]


def _loops(space: Space, variant: Variant) -> frozenset[AxisId]:
    return loops_of(_node(space, variant), space.classes, variant.of)
