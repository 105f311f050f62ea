"""Rewrites of a node list before it is cut into regions."""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.tracing.nodes import Node, NodeList, Ref, Type, Value, live

CAUSAL_BIAS = "ilang_eq.causal_bias"
"""An op of ours, run beside PyTorch's: (L, S) to an L×S tensor of 0 where key ≤ query, else -inf.

Its arguments are numbers, or tensors of queries and keys whose second but last dimensions they are.
"""

_CHECKS = ("aten._assert_", "aten.sym_constrain_", "aten._assert")
"""Calls that only check what tracing has settled."""


def prepared(program: NodeList) -> NodeList:
    """``program`` without checks and dead code, with causal flags as additive biases."""
    nodes: list[Node] = []
    biases: dict[tuple[int | str, ...], str] = {}
    types = program.types()
    for node in program.nodes:
        if node.op.startswith(_CHECKS):
            continue
        nodes += _unflagged(node, types, biases)
    return live(replace(program, nodes=tuple(nodes)))


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
