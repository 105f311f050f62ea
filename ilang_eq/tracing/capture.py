"""PyTorch to node lists, through ``torch.export`` or from an fx graph. Loads torch."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import GraphModule
from torch.fx import Node as FxNode
from torch.utils import _pytree as pytree

from ilang_eq.errors import ArrayError, TraceError
from ilang_eq.tracing.extents import Extent, extent_of, solve
from ilang_eq.tracing.nodes import Argument, ArgumentKind, Node, NodeList, Ref, Special, Type, Value, checked

KEPT = (
    torch.ops.aten.linear.default,
    torch.ops.aten.matmul.default,
    torch.ops.aten.layer_norm.default,
    torch.ops.aten.rms_norm.default,
    torch.ops.aten.silu.default,
    torch.ops.aten.scaled_dot_product_attention.default,
    torch.ops.aten.cdist.default,
    torch.ops.aten.instance_norm.default,
    torch.ops.aten.log_sigmoid.default,
    torch.ops.aten.logsumexp.default,
    torch.ops.aten.mish.default,
    torch.ops.aten.prelu.default,
    torch.ops.aten.softplus.default,
    torch.ops.aten.celu.default,
    torch.ops.aten.selu.default,
    torch.ops.aten.lerp.Scalar,
    torch.ops.aten.lerp.Tensor,
)
"""Ops that PyTorch would take apart, and the tables know whole."""

_CHECKED = ("aten.inverse.", "aten.linalg_", "aten.pinverse.")
_TAKEN_APART = ("aten.linalg_cross.", "aten.linalg_matmul.", "aten.linalg_multi_dot.", "aten.linalg_vecdot.")


def _kept(op: Any) -> bool:
    """Whether PyTorch must not take ``op`` apart: the tables know it whole, or its parts would check errors.

    Checks are calls with effects, which no node list has.
    """
    return op in KEPT or (str(op).startswith(_CHECKED) and not str(op).startswith(_TAKEN_APART))


SYMBOLIC: Mapping[str, Callable[..., Any]] = {
    "getitem": operator.getitem,
    "operator.add": operator.add,
    "operator.sub": operator.sub,
    "operator.mul": operator.mul,
    "operator.floordiv": operator.floordiv,
    "operator.mod": operator.mod,
    "operator.neg": operator.neg,
    "operator.eq": operator.eq,
    "operator.ge": operator.ge,
    "operator.gt": operator.gt,
    "operator.le": operator.le,
    "operator.lt": operator.lt,
}
"""Python functions that stand in a graph beside ATen calls: of tuples, and of sizes known at run time."""

_NAMES = {function: name for name, function in SYMBOLIC.items()}

_KINDS: Mapping[InputKind, ArgumentKind] = {
    InputKind.USER_INPUT: "input",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "parameter",
    InputKind.CONSTANT_TENSOR: "constant",
}


@dataclass(frozen=True, slots=True)
class Captured:
    """A program, the tensors it owns by argument name, and the structure of its inputs and results.

    ``places`` says where the module keeps them: in which dictionary, under which key.
    """

    program: NodeList
    tensors: Mapping[str, torch.Tensor]
    arguments: pytree.TreeSpec
    results: pytree.TreeSpec
    places: Mapping[str, tuple[Mapping[str, torch.Tensor | None], str]] = field(default_factory=dict)

    def replaced(self) -> dict[str, torch.Tensor]:
        """What the module has now in place of tensors it had, by argument name. Raises ArrayError for another type."""
        found: dict[str, torch.Tensor] = {}
        for name, (table, key) in self.places.items():
            now, before = table.get(key), self.tensors[name]
            if now is before or now is None:
                continue
            if now.shape != before.shape or now.dtype != before.dtype:
                raise ArrayError(
                    f"{name} is {now.dtype} of {tuple(now.shape)} now",
                    expected=f"{before.dtype} of {tuple(before.shape)}, as when the model was traced",
                )
            found[name] = now
        return found


class _Function(torch.nn.Module):
    """A function as a module, which is what ``torch.export`` takes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def capture(
    module: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any = None
) -> Captured:
    """Export ``module`` for inputs like these, in ATen calls. Raises TraceError where PyTorch cannot export it.

    ``dynamic_shapes`` are as ``torch.export`` takes them.
    """
    table = torch.export.default_decompositions()
    for op in filter(_kept, list(table)):
        del table[op]
    table[torch.ops.aten.var_mean.correction] = _var_mean
    wrapped = module if isinstance(module, torch.nn.Module) else _Function(module)
    if wrapped is not module and isinstance(dynamic_shapes, Sequence):
        dynamic_shapes = {"args": tuple(dynamic_shapes)}
    args, kwargs = _distinct((args, dict(kwargs)), [*wrapped.parameters(), *wrapped.buffers()])
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = torch.export.export(
                wrapped, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False
            ).run_decompositions(table)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise TraceError(f"torch.export cannot trace {_named(module)}: {reason}") from error
    kinds: dict[str, tuple[ArgumentKind, str]] = {}
    for spec in exported.graph_signature.input_specs:
        if spec.kind not in _KINDS:
            raise TraceError(f"the model takes an argument of kind {spec.kind.name}", expected="tensors")
        kinds[spec.arg.name] = (_KINDS[spec.kind], spec.target or "")
    for spec in exported.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise TraceError(f"the model changes {spec.target} while it runs", expected="a model without state")
    program = from_graph(exported.graph_module, kinds)
    held = {**exported.state_dict, **exported.constants}
    tensors = {a.name: held[a.target] for a in program.arguments if a.kind != "input"}
    arguments, results = exported.call_spec.in_spec, exported.call_spec.out_spec
    assert arguments is not None, "torch.export records the structure of inputs"
    assert results is not None, "torch.export records the structure of results"
    return Captured(program, tensors, arguments, results, _places(wrapped, program, tensors))


def _distinct(arguments: Any, held: Iterable[torch.Tensor]) -> Any:
    """``arguments`` without tensors that are there twice or in ``held``: PyTorch takes them to be so at every call."""
    seen = set(map(id, held))

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or id(leaf) not in seen:
            seen.add(id(leaf))
            return leaf
        return leaf.detach().clone()

    return pytree.tree_map(own, arguments)


def _places(
    module: torch.nn.Module, program: NodeList, tensors: Mapping[str, torch.Tensor]
) -> dict[str, tuple[Mapping[str, torch.Tensor | None], str]]:
    """Where ``module`` keeps the tensors of ``program``; those that are elsewhere stay what they are."""
    owners = dict(module.named_modules(remove_duplicate=False))
    places: dict[str, tuple[Mapping[str, torch.Tensor | None], str]] = {}
    for argument in program.arguments:
        path, _, key = argument.target.rpartition(".")
        if argument.kind == "input" or path not in owners:
            continue
        for table in (owners[path]._parameters, owners[path]._buffers):
            if table.get(key) is tensors[argument.name]:
                places[argument.name] = table, key
    return places


def _var_mean(
    x: torch.Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both results as calls of their own."""
    return torch.var(x, dim, correction=correction, keepdim=keepdim), torch.mean(x, dim, keepdim)


def from_graph(module: GraphModule, kinds: Mapping[str, tuple[ArgumentKind, str]]) -> NodeList:
    """The node list of an fx graph of ATen calls. ``kinds``: what placeholders are, if not inputs."""
    arguments: list[Argument] = []
    nodes: list[Node] = []
    outputs: tuple[Value, ...] = ()
    for node in module.graph.nodes:
        match node.op:
            case "placeholder":
                kind, target = kinds.get(node.name, ("input", ""))
                given = node.meta.get("val")
                value = given if isinstance(given, bool | int | float | str) else None
                arguments.append(Argument(node.name, kind, _type(node), target, value))
            case "get_attr":
                arguments.append(Argument(node.name, "constant", _type(node), str(node.target)))
            case "call_function":
                nodes.append(_call(node))
            case "output":
                outputs = tuple(map(_value, node.args[0]))
            case _:
                raise TraceError(f"{node.name} is a {node.op} in the graph", expected="ATen calls")
    return checked(NodeList(tuple(arguments), tuple(nodes), outputs, _sizes(module)))


def _call(node: FxNode) -> Node:
    try:
        args, kwargs = tuple(map(_value, node.args)), tuple((name, _value(v)) for name, v in node.kwargs.items())
    except TraceError as error:
        raise TraceError(f"{_line(node) or node.name}: {_op(node)} takes {error}") from None
    return Node(node.name, _op(node), args, kwargs, _type(node), _line(node))


def _op(node: FxNode) -> str:
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return f"{target.namespace}.{target._opname}.{target._overloadname}"
    if not isinstance(target, str) and target in _NAMES:
        return _NAMES[target]
    raise TraceError(f"{_line(node) or node.name}: {target} is no ATen call", expected="a model without control flow")


def _value(value: Any) -> Value:
    match value:
        case FxNode():
            return Ref(value.name)
        case list() | tuple():
            return tuple(map(_value, value))
        case None | bool() | int() | float() | str():
            return value
        case torch.SymInt():
            return int(value) if value.node.is_constant() else str(value.node.expr)
        case torch.dtype() | torch.layout() | torch.memory_format():
            return Special(type(value).__name__, str(value).removeprefix("torch."))
        case torch.device():
            return Special("device", str(value))
        case _:
            raise TraceError(f"a value of type {type(value).__name__}", expected="tensors and real numbers")


def _type(node: FxNode) -> Type:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return Type(str(value.dtype).removeprefix("torch."), tuple(map(_size, value.shape)))
    if isinstance(value, tuple | list):
        return Type("tuple")
    return Type("none" if value is None else "int")


def _size(size: Any) -> int | str:
    return size if isinstance(size, int) else str(size.node.expr)


def _sizes(module: GraphModule) -> dict[str, int]:
    """What the symbols in shapes were in the example."""
    pairs: list[tuple[Extent, int]] = []
    for node in module.graph.nodes:
        value = node.meta.get("val")
        shape: tuple[Any, ...] = tuple(value.shape) if isinstance(value, torch.Tensor) else ()
        pairs += [(extent_of(str(size.node.expr)), int(size.node.hint)) for size in shape if not isinstance(size, int)]
    return solve(pairs)


def _line(node: FxNode) -> str:
    """The innermost line of Python that a node comes from, as ``file:12``."""
    lines = (node.meta.get("stack_trace") or "").splitlines()
    frames = [line for line in lines if line.strip().startswith("File ") and __file__ not in line]
    if not frames:
        return ""
    _, path, rest = frames[-1].split('"', 2)
    number = rest.split("line ", 1)[1].split(",", 1)[0]
    return f"{path}:{number}"


def _named(module: Callable[..., Any]) -> str:
    return getattr(module, "__name__", type(module).__name__)
