"""The operations of ``benchmarks.formulas`` as nodes of an ONNX graph: running a formula on ``Node`` records it."""

from __future__ import annotations

import builtins
import importlib
from typing import Any

import numpy as np

helper: Any = importlib.import_module("onnx.helper")
numpy_helper: Any = importlib.import_module("onnx.numpy_helper")

FLOAT = np.dtype(np.float32)


class Graph:
    """Nodes and constants, as they are recorded."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: np.ndarray) -> Node:
        """A new constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return Node(self, name, value.ndim)

    def node(self, kind: str, rank: int, *operands: Node, **attributes: Any) -> Node:
        """A new node of ONNX operator ``kind``, whose result has ``rank`` dimensions."""
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [o.name for o in operands], [name], **attributes))
        return Node(self, name, rank)


class Node:
    """A value of the graph."""

    def __init__(self, graph: Graph, name: str, rank: int) -> None:
        self.graph, self.name, self.rank = graph, name, rank

    def _binary(self, kind: str, other: Node | float) -> Node:
        operand = other if isinstance(other, Node) else self.graph.constant(np.asarray(other, FLOAT))
        return self.graph.node(kind, builtins.max(self.rank, operand.rank), self, operand)

    def __add__(self, other: Node | float) -> Node:
        return self._binary("Add", other)

    def __sub__(self, other: Node | float) -> Node:
        return self._binary("Sub", other)

    def __mul__(self, other: Node | float) -> Node:
        return self._binary("Mul", other)

    def __truediv__(self, other: Node | float) -> Node:
        return self._binary("Div", other)

    def __rtruediv__(self, other: float) -> Node:
        return _unary("Reciprocal", self) * other

    def __neg__(self) -> Node:
        return _unary("Neg", self)


def _unary(kind: str, x: Node, **attributes: Any) -> Node:
    return x.graph.node(kind, x.rank, x, **attributes)


def _reduced(kind: str, x: Node, axis: int, keepdims: bool) -> Node:
    axes = x.graph.constant(np.array([axis], np.int64))
    return x.graph.node(kind, x.rank if keepdims else x.rank - 1, x, axes, keepdims=int(keepdims))


def exp(x: Node) -> Node:
    return _unary("Exp", x)


def log(x: Node) -> Node:
    return _unary("Log", x)


def sqrt(x: Node) -> Node:
    return _unary("Sqrt", x)


def tanh(x: Node) -> Node:
    return _unary("Tanh", x)


def relu(x: Node) -> Node:
    return _unary("Relu", x)


def silu(x: Node) -> Node:
    return x * sigmoid(x)


def sigmoid(x: Node) -> Node:
    return _unary("Sigmoid", x)


def einsum(pattern: str, *operands: Node) -> Node:
    rank = len(pattern.partition("->")[2].strip())
    return operands[0].graph.node("Einsum", rank, *operands, equation=pattern)


def softmax(x: Node, axis: int = -1) -> Node:
    return _unary("Softmax", x, axis=axis)


def matmul(a: Node, b: Node) -> Node:
    rank = builtins.max(a.rank, b.rank) if builtins.min(a.rank, b.rank) > 1 else builtins.max(a.rank, b.rank) - 1
    return a.graph.node("MatMul", rank, a, b)


def transposed(x: Node) -> Node:
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    return _unary("Transpose", x, perm=order)


def expand(x: Node, axis: int) -> Node:
    return x.graph.node("Unsqueeze", x.rank + 1, x, x.graph.constant(np.array([axis], np.int64)))


def sum(x: Node, axis: int, keepdims: bool) -> Node:
    return _reduced("ReduceSum", x, axis, keepdims)


def mean(x: Node, axis: int, keepdims: bool) -> Node:
    return _reduced("ReduceMean", x, axis, keepdims)


def max(x: Node, axis: int, keepdims: bool) -> Node:
    return _reduced("ReduceMax", x, axis, keepdims)


def min(x: Node, axis: int, keepdims: bool) -> Node:
    return _reduced("ReduceMin", x, axis, keepdims)


def logsumexp(x: Node, axis: int = -1) -> Node:
    return _reduced("ReduceLogSumExp", x, axis, keepdims=False)


def layer_norm(x: Node, gain: Node, shift: Node, epsilon: float) -> Node:
    return x.graph.node("LayerNormalization", x.rank, x, gain, shift, axis=-1, epsilon=epsilon)
