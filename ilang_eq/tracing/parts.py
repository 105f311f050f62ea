"""Parts of a product with weights, as products with parts of the weights: nothing is computed whole and then cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ilang_eq.tracing.nodes import Node, NodeList, Ref, Type, Value, references

PART = "ilang_eq.part"
"""An op of ours, run beside PyTorch's: (tensor, dimension, start, end) to what lies between, in memory of its own."""


@dataclass(frozen=True, slots=True)
class _Product:
    """Where the weight and the bias of an op stand, and which dimension of the weight is the result's last."""

    weight: int
    bias: int
    dimension: int


_PRODUCTS = {
    "aten.linear.default": _Product(1, 2, 0),
    "aten.addmm.default": _Product(2, 0, 1),
    "aten.mm.default": _Product(1, 2, 1),
    "aten.matmul.default": _Product(1, 2, 1),
}
_RESHAPES = ("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default")


def in_parts(program: NodeList) -> NodeList:
    """``program`` with every product that is only cut along its last dimension computed in these parts."""
    readers: dict[str, list[Node]] = {}
    for node in program.nodes:
        for name in node.reads:
            readers.setdefault(name, []).append(node)
    parameters = {a.name: a.type for a in program.arguments if a.kind != "input" and a.type.dtype == "float32"}
    returned = set(references(program.outputs))
    replaced: dict[str, list[Node]] = {}
    for node in program.nodes:
        chain = _chain(node, readers, returned, parameters) if node.op in _PRODUCTS else None
        if chain is not None:
            *whole, cut = chain
            for name in (*(each.name for each in whole), cut.name):
                replaced[name] = []
            for part in readers[cut.name]:
                replaced[part.name] = list(_part(whole, part, _bounds(cut)[_index(part)], parameters))
    nodes = [made for node in program.nodes for made in replaced.get(node.name, [node])]
    return replace(program, nodes=tuple(nodes)) if replaced else program


def _chain(
    node: Node, readers: Mapping[str, Sequence[Node]], returned: set[str], parameters: Mapping[str, Type]
) -> list[Node] | None:
    """A product, reshapes that leave its last dimension, and the call that cuts that; None for anything else."""
    place = _PRODUCTS[node.op]
    weight, bias = node.value(place.weight, ""), node.value(place.bias, "")
    if not isinstance(weight, Ref) or weight.name not in parameters or len(parameters[weight.name].shape) != 2:
        return None
    if node.kwargs or not (bias is None or (isinstance(bias, Ref) and _is_vector(parameters.get(bias.name)))):
        return None
    width = node.type.shape[-1]
    chain = [node]
    while chain[-1].name not in returned and len(readers.get(chain[-1].name, ())) == 1:
        chain.append(readers[chain[-1].name][0])
        if chain[-1].op == "aten.split_with_sizes.default":
            return chain if _is_cut(chain, readers, returned) else None
        shape = chain[-1].args[-1]
        if chain[-1].op not in _RESHAPES or not isinstance(shape, tuple) or shape[-1] not in (-1, width):
            return None
        if chain[-1].type.shape[-1] != width:
            return None
    return None


def _is_vector(of: Type | None) -> bool:
    return of is not None and len(of.shape) == 1


def _is_cut(chain: Sequence[Node], readers: Mapping[str, Sequence[Node]], returned: set[str]) -> bool:
    """Whether the last of ``chain`` cuts the last dimension into parts of known size, and only the parts are read."""
    *_, before, cut = chain
    sizes, dimension = cut.value(1, "split_sizes"), cut.value(2, "dim", 0)
    return (
        dimension in (-1, len(before.type.shape) - 1)
        and isinstance(sizes, tuple)
        and all(isinstance(size, int) for size in sizes)
        and cut.name not in returned
        and all(reader.op == "getitem" for reader in readers.get(cut.name, ()))
    )


def _bounds(cut: Node) -> list[tuple[int, int]]:
    """Where each part begins and ends."""
    bounds: list[tuple[int, int]] = []
    sizes = cut.value(1, "split_sizes")
    for size in sizes if isinstance(sizes, tuple) else ():
        start = bounds[-1][1] if bounds else 0
        bounds.append((start, start + size if isinstance(size, int) else start))
    return bounds


def _index(part: Node) -> int:
    return part.args[1] if isinstance(part.args[1], int) else 0


def _part(whole: Sequence[Node], part: Node, bounds: tuple[int, int], types: Mapping[str, Type]) -> Iterator[Node]:
    """``whole``, a product and reshapes, for what lies between ``bounds``; the last node is called as ``part`` is."""
    product, *reshapes = whole
    place = _PRODUCTS[product.op]
    width = bounds[1] - bounds[0]
    args = list(product.args)
    for position, dimension in ((place.weight, place.dimension), (place.bias, 0)):
        given = product.value(position, "")
        if isinstance(given, Ref):
            shape = list(types[given.name].shape)
            shape[dimension] = width
            made = f"{part.name}.{given.name}"
            yield Node(made, PART, (given, dimension, *bounds), (), Type("float32", tuple(shape)), product.line)
            args[position] = Ref(made)
    names = [*(f"{part.name}.{each.name}" for each in whole[:-1]), part.name]
    yield replace(product, name=names[0], args=tuple(args), type=_last(product.type, width))
    for before, name, each in zip(names, names[1:], reshapes, strict=False):
        shape = each.args[-1]
        wanted: Value = (*shape[:-1], width) if isinstance(shape, tuple) else shape
        yield replace(each, name=name, args=(Ref(before), wanted), type=_last(each.type, width))


def _last(of: Type, width: int) -> Type:
    return Type(of.dtype, (*of.shape[:-1], width))
