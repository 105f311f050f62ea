"""A search space evaluated by its definition: every node of every class, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

from ilang_eq.lang.graph import Input
from ilang_eq.lang.ops import OPS
from ilang_eq.rewrites.space import Apply, AxisId, ClassId, ENode, Number, Read, Reduce, Space, View

Array = NDArray[np.float64]
Choose = Callable[[ClassId, tuple[ENode, ...]], ENode]


def first_node(_: ClassId, nodes: tuple[ENode, ...]) -> ENode:
    return nodes[0]


def evaluate_space(space: Space, arrays: Sequence[Array], choose: Choose = first_node) -> dict[ClassId, Array]:
    """The value of each class, by the node that ``choose`` picks; dimensions are the class's axes in order."""
    values: dict[ClassId, Array] = {}
    with np.errstate(all="ignore"):
        for c, found in space.classes.items():
            values[c] = node_value(space, choose(c, found.nodes), arrays, values)
    return values


def node_value(space: Space, node: ENode, arrays: Sequence[Array], values: Mapping[ClassId, Array]) -> Array:
    """What one node computes from the values of its operands."""
    match node:
        case Read(index, axes):
            return _placed(np.asarray(arrays[index], dtype=np.float64), axes, tuple(sorted(set(axes))))
        case Number(value):
            return np.asarray(value)
        case View(x, source, axes):
            straight = _placed(values[x], space.classes[x].axes, source)
            return _placed(straight, axes, tuple(sorted(set(axes))))
        case Apply(op, (x,)):
            return OPS[op].unary(values[x])
        case Apply(op, read):
            union = tuple(sorted({axis for x in read for axis in space.classes[x].axes}))
            return OPS[op].apply(*(_spread(values[x], space.classes[x].axes, union) for x in read))
        case Reduce(op, axes, x):
            return OPS[op].reduce(values[x], tuple(space.classes[x].axes.index(axis) for axis in axes))


def assert_classes_agree(space: Space, arrays: Sequence[Array], tolerance: float = 1e-6) -> int:
    """Every node of a class has the class's value wherever all are finite. Returns how many nodes were compared."""
    values = evaluate_space(space, arrays)
    compared = 0
    with np.errstate(all="ignore"):
        for c, found in space.classes.items():
            for node in found.nodes[1:]:
                value = np.broadcast_to(node_value(space, node, arrays, values), values[c].shape)
                finite = np.isfinite(value) & np.isfinite(values[c])
                scale = np.max(np.abs(values[c][finite]), initial=0.0) + 1e-30
                error = np.max(np.abs(value - values[c])[finite], initial=0.0) / scale
                assert error <= tolerance, f"class {c}: {node} is off by {error:.2g} from {found.nodes[0]}"
                compared += 1
    return compared


def outputs_of(space: Space, arrays: Sequence[Array], choose: Choose = first_node) -> list[Array]:
    """What the component returns."""
    values = evaluate_space(space, arrays, choose)
    return [
        np.asarray(arrays[wire.index], dtype=np.float64)
        if isinstance(wire, Input)
        else _placed(values[wire], space.classes[wire].axes, dims)
        for wire, dims in space.outputs
    ]


def _placed(array: Array, axes: tuple[AxisId, ...], order: tuple[AxisId, ...]) -> Array:
    """Dimensions named by ``axes`` in ``order``; a repeated axis is a diagonal."""
    letters = dict(zip(sorted(set(axes)), ascii_lowercase, strict=False))
    return np.einsum(f"{''.join(letters[a] for a in axes)}->{''.join(letters[a] for a in order)}", array)


def _spread(array: Array, axes: tuple[AxisId, ...], union: tuple[AxisId, ...]) -> Array:
    """With dimensions of extent one for the axes of ``union`` that it lacks."""
    return array.reshape([array.shape[axes.index(a)] if a in axes else 1 for a in union])
