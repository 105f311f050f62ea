"""Rewrites of a node list before it is cut into regions."""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.tracing.nodes import Node, NodeList, Ref, Type, Value, live

CAUSAL_BIAS = "ilang_eq.causal_bias"
"""An op of ours, run beside PyTorch's: (L, S) to an L×S tensor of 0 where key ≤ query, else -inf.

Its arguments are numbers, or tensors of queries and keys whose second but last dimensions they are.
"""

TRANSPOSED = "ilang_eq.transposed"
"""An op of ours, run beside PyTorch's: a matrix transposed, in memory of its own."""

_CHECKS = ("aten._assert_", "aten.sym_constrain_", "aten._assert")
"""Calls that only check what tracing has settled."""


def prepared(program: NodeList) -> NodeList:
    """``program`` without checks and dead code, its causal flags as additive biases, its weights as products read them.

    A product reads a weight row by row of what it sums over. Parameters stay the same from call to call, so that one
    that is stored the other way is transposed ahead.
    """
    nodes: list[Node] = []
    biases: dict[tuple[int | str, ...], str] = {}
    transposed: dict[str, Node] = {}
    types = program.types()
    parameters = {a.name for a in program.arguments if a.kind != "input"}
    for node in program.nodes:
        if node.op.startswith(_CHECKS):
            continue
        nodes += _weighted(node, types, parameters, transposed) or _unflagged(node, types, biases)
    return live(replace(program, nodes=tuple(nodes)))


def _weighted(node: Node, types: dict[str, Type], parameters: set[str], transposed: dict[str, Node]) -> list[Node]:
    """A call that reads a parameter's transpose, with one made ahead; nothing if it is another."""
    weight = node.value(0 if node.op in _TRANSPOSING else 1, "weight")
    if not isinstance(weight, Ref) or weight.name not in parameters or len(types[weight.name].shape) != 2:
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


def _unflagged(node: Node, types: dict[str, Type], biases: dict[tuple[int | str, ...], str]) -> list[Node]:
    """An attention call that says it is causal, with a bias that says so; anything else as it is."""
    flag = _FLAGS.get(node.op)
    query, key = node.value(0, "query"), node.value(1, "key")
    if flag is None or not isinstance(query, Ref) or not isinstance(key, Ref) or not node.value(flag, "is_causal"):
        return [node]
    masked = node.value(3 if flag == 5 else len(node.args), "attn_mask")
    if masked is not None:
        return [node]
    lengths = types[query.name].shape[-2], types[key.name].shape[-2]
    made: list[Node] = []
    if lengths not in biases:
        biases[lengths] = f"causal_bias_{len(biases)}"
        args: tuple[Value, ...] = tuple(
            n if isinstance(n, int) else of for n, of in zip(lengths, (query, key), strict=True)
        )
        made.append(Node(biases[lengths], CAUSAL_BIAS, args, (), Type("float32", lengths), node.line))
    kwargs = {name: value for name, value in node.kwargs if name not in ("attn_mask", "is_causal")}
    args = node.args[:3]
    kept = {**kwargs, "dropout_p": node.value(flag - 1, "dropout_p", 0.0), "attn_mask": Ref(biases[lengths])}
    return [*made, replace(node, args=args, kwargs=tuple(kept.items()))]


_FLAGS = {
    "aten.scaled_dot_product_attention.default": 5,
    "aten._scaled_dot_product_flash_attention_for_cpu.default": 4,
}
"""Where the causal flag stands."""
