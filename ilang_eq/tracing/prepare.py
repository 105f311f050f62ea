"""Rewrites of a node list before it is cut into regions."""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.tracing.masks import Masks
from ilang_eq.tracing.nodes import Node, NodeList, Ref, Type, live
from ilang_eq.tracing.parts import PART, in_parts

TRANSPOSED = "ilang_eq.transposed"
"""An op of ours, run beside PyTorch's: a matrix transposed, in memory of its own."""

_CHECKS = ("aten._assert_", "aten.sym_constrain_", "aten._assert")
"""Calls that only check what tracing has settled."""


def prepared(program: NodeList) -> NodeList:
    """``program`` without checks and dead code, its masks as finite biases, its weights as products read them.

    A product reads a weight row by row of what it sums over. Parameters stay the same from call to call, so that one
    that is stored the other way is transposed ahead.
    """
    program = in_parts(program)
    nodes: list[Node] = []
    transposed: dict[str, Node] = {}
    masks = Masks(program)
    types = program.types()
    parameters = {a.name for a in program.arguments if a.kind != "input"}
    parameters |= {node.name for node in program.nodes if node.op == PART}
    for node in program.nodes:
        if node.op.startswith(_CHECKS):
            continue
        nodes += _weighted(node, types, parameters, transposed) or masks.biased(node)
    return live(replace(program, nodes=tuple(nodes)))


def _weighted(node: Node, types: dict[str, Type], parameters: set[str], transposed: dict[str, Node]) -> list[Node]:
    """A call that reads a parameter's transpose, with one made ahead; nothing if it is another."""
    weight = node.value(0 if node.op in _TRANSPOSING else 1, "weight")
    if not isinstance(weight, Ref) or weight.name not in parameters or len(types[weight.name].shape) != 2:
        return []
    if types[weight.name].dtype != "float32":
        # PyTorch computes it, and adds the bias before it rounds
        return []
    shape = types[weight.name].shape[::-1]
    made = Node(f"{weight.name}_transposed", TRANSPOSED, (weight,), (), Type("float32", shape))
    if node.op in _TRANSPOSING and _swaps(node):
        return [replace(node, op=TRANSPOSED, args=(weight,), kwargs=())]
    if node.op != "aten.linear.default":
        return []
    ahead = [] if weight.name in transposed else [transposed.setdefault(weight.name, made)]
    bias = node.value(2, "bias")
    product = replace(node, op="aten.matmul.default", args=(node.args[0], Ref(made.name)), kwargs=())
    if bias is None:
        return [*ahead, product]
    product = replace(product, name=f"{node.name}_product")
    return [*ahead, product, replace(node, op="aten.add.Tensor", args=(Ref(product.name), bias), kwargs=())]


def _swaps(node: Node) -> bool:
    """Whether a call of ``_TRANSPOSING`` on a matrix transposes it."""
    match node.op, node.args[1:]:
        case "aten.t.default", _:
            return True
        case "aten.permute.default", ((int(first), int(second)),):
            return (first % 2, second % 2) == (1, 0)
        case "aten.transpose.int", (int(first), int(second)):
            return first % 2 != second % 2
        case _:
            return False


_TRANSPOSING = ("aten.t.default", "aten.permute.default", "aten.transpose.int")
"""Calls that may transpose a matrix."""
