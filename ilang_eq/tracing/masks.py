"""Attention under a mask, as attention with a finite bias: what is added is made once, beside PyTorch's calls.

PyTorch returns 0 for a query that sees no key, where a softmax of -inf has no value. So hidden keys get a bias that is
finite, and the result is multiplied by 0 for such queries.
"""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.tracing.nodes import Node, NodeList, Ref, Type, Value

CAUSAL_BIAS = "ilang_eq.causal_bias"
"""(L, S) to an L×S tensor of 0 where key ≤ query, else -inf.

Its arguments are numbers, or tensors of queries and keys whose second but last dimensions they are.
"""

MASK_BIAS = "ilang_eq.mask_bias"
"""A mask, of truth values or added, to finite numbers: where a key is hidden, so low that its weight is 0."""

SOME_KEY = "ilang_eq.some_key"
"""A mask to 1 for each query that sees a key, 0 for one that sees none."""

KEYWORD = 1 << 10
"""The position of what is given by keyword only."""

ATTENTION_ARGUMENTS = {
    "aten.scaled_dot_product_attention.default": (3, 4, 5),
    "aten._scaled_dot_product_flash_attention_for_cpu.default": (KEYWORD, 3, 4),
}
"""Where the mask, the dropout and the causal flag stand."""


class Masks:
    """What has been made of the masks and causal flags of a program."""

    def __init__(self, program: NodeList) -> None:
        self.types = program.types()
        self._biases: dict[tuple[int | str, ...], str] = {}
        self._masks: set[str] = set()
        self._seen: dict[str, Ref] = {}

    def biased(self, node: Node) -> list[Node]:
        """What stands for ``node``: attention with a bias in place of a mask or flag; anything else as it is."""
        if node.op == "getitem" and node.args[1] == 0 and node.reads[0] in self._seen:
            return self._zeroed(node, self._seen[node.reads[0]])
        if node.op not in ATTENTION_ARGUMENTS:
            return [node]
        masked, _, causal = ATTENTION_ARGUMENTS[node.op]
        mask, flagged = node.value(masked, "attn_mask"), node.value(causal, "is_causal")
        if isinstance(mask, Ref) and not flagged and self.types[mask.name].dtype in ("bool", "float32"):
            return self._masked(node, mask)
        return self._causal(node) if flagged and mask is None else [node]

    def _masked(self, node: Node, mask: Ref) -> list[Node]:
        shape = self.types[mask.name].shape
        bias, seen = f"{mask.name}_bias", f"{mask.name}_seen"
        ahead: list[Node] = []
        if mask.name not in self._masks:
            self._masks.add(mask.name)
            ahead = [
                Node(bias, MASK_BIAS, (mask,), (), Type("float32", shape), node.line),
                Node(seen, SOME_KEY, (mask,), (), Type("float32", (*shape[:-1], 1)), node.line),
            ]
        found = _with_bias(node, bias)
        if node.type.is_tensor:
            return [*ahead, *self._zeroed(found, Ref(seen))]
        self._seen[node.name] = Ref(seen)
        return [*ahead, found]

    def _zeroed(self, node: Node, seen: Ref) -> list[Node]:
        """``node`` times what is 0 for queries that see no key."""
        before = replace(node, name=f"{node.name}_masked")
        return [before, replace(node, op="aten.mul.Tensor", args=(Ref(before.name), seen), kwargs=())]

    def _causal(self, node: Node) -> list[Node]:
        query, key = node.value(0, "query"), node.value(1, "key")
        if not isinstance(query, Ref) or not isinstance(key, Ref):
            return [node]
        lengths = self.types[query.name].shape[-2], self.types[key.name].shape[-2]
        ahead: list[Node] = []
        if lengths not in self._biases:
            self._biases[lengths] = f"causal_bias_{len(self._biases)}"
            args: tuple[Value, ...] = tuple(
                n if isinstance(n, int) else of for n, of in zip(lengths, (query, key), strict=True)
            )
            ahead = [Node(self._biases[lengths], CAUSAL_BIAS, args, (), Type("float32", lengths), node.line)]
        return [*ahead, _with_bias(node, self._biases[lengths])]


def _with_bias(node: Node, bias: str) -> Node:
    """An attention call with ``bias`` for its mask, and no causal flag."""
    _, dropout, _ = ATTENTION_ARGUMENTS[node.op]
    kept = {name: value for name, value in node.kwargs if name not in ("attn_mask", "is_causal")}
    kept |= {"dropout_p": node.value(dropout, "dropout_p", 0.0), "attn_mask": Ref(bias)}
    return replace(node, args=node.args[:3], kwargs=tuple(kept.items()))
