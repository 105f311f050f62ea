"""The steps of a traced program: calls that PyTorch runs, and regions that kernels run. Loads torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch

from ilang_eq.backends import Kernel
from ilang_eq.c.arrays import Floats, empty
from ilang_eq.errors import ArrayError, TraceError
from ilang_eq.tracing.capture import SYMBOLIC
from ilang_eq.tracing.extents import solve
from ilang_eq.tracing.kernels import Kernels
from ilang_eq.tracing.masks import CAUSAL_BIAS, MASK_BIAS, SOME_KEY
from ilang_eq.tracing.nodes import Node, Ref, Special, Type, Value
from ilang_eq.tracing.parts import PART
from ilang_eq.tracing.prepare import TRANSPOSED
from ilang_eq.tracing.region import Region

Values: TypeAlias = dict[str, Any]
"""Values by name: tensors, and NumPy arrays for what regions alone read; truth values among these are 1 and 0."""

SIZES = "sizes of a call"
"""Where values keep what the symbols of the program are: a merged dimension alone does not tell its parts."""


class Memory(Protocol):
    """Where memory comes from."""

    def take(self, floats: int) -> Floats:
        """Memory for at least so many numbers."""
        ...


def causal_bias(queries: int | torch.Tensor, keys: int | torch.Tensor) -> torch.Tensor:
    """0 where a query may see a key, that is, up to its own number, else -inf."""
    shape = [n if isinstance(n, int) else n.shape[-2] for n in (queries, keys)]
    return torch.full(shape, float("-inf")).triu(1)


LEAST = -1e38
"""What is added to scores that do not count: far less than any score, and finite after adding one."""


def mask_bias(mask: torch.Tensor) -> torch.Tensor:
    """What to add to scores under a mask of truth values, or one that is added."""
    return torch.where(mask, 0.0, LEAST) if mask.dtype is torch.bool else mask.clamp(min=LEAST)


def some_key(mask: torch.Tensor) -> torch.Tensor:
    """1 for each query that sees a key, else 0."""
    return (mask if mask.dtype is torch.bool else mask > float("-inf")).any(-1, keepdim=True).float()


def function_of(op: str) -> Callable[..., Any]:
    """What PyTorch runs for an op of a node list. Raises TraceError for one there is not."""
    if op in _OURS:
        return _OURS[op]
    if op in SYMBOLIC:
        return SYMBOLIC[op]
    # what a region makes is contiguous; PyTorch's own result may have had the strides that a view needs
    op = _RELAXED.get(op, op)
    namespace, _, rest = op.partition(".")
    name, _, overload = rest.partition(".")
    library = getattr(torch.ops, namespace, None) if namespace.isidentifier() else None
    packet = getattr(library, name, None) if name.isidentifier() else None
    if not isinstance(packet, torch._ops.OpOverloadPacket) or overload not in packet.overloads():
        raise TraceError(f"there is no op {op!r}", expected="aten.name.overload", legal=tuple(SYMBOLIC))
    return getattr(packet, overload)


_OURS: Mapping[str, Callable[..., Any]] = {
    CAUSAL_BIAS: causal_bias,
    MASK_BIAS: mask_bias,
    SOME_KEY: some_key,
    PART: lambda tensor, dim, start, end: tensor.detach().narrow(dim, start, end - start).contiguous(),
    TRANSPOSED: lambda matrix: matrix.detach().t().contiguous(),
}

_RELAXED = {"aten.view.default": "aten.reshape.default", "aten._unsafe_view.default": "aten.reshape.default"}


def constant_of(value: Value) -> Any:
    """The torch constant or number that an argument stands for. Raises TraceError for one there is not."""
    match value:
        case Special("device", name):
            return torch.device(name)
        case Special(kind, name):
            found = getattr(torch, name, None)
            if type(found).__name__ != kind:
                raise TraceError(f"torch has no {kind} {name!r}")
            return found
        case _:
            return value


def torch_call(node: Node) -> Callable[[Values], Any]:
    """What a node left to PyTorch does, as a function of the values so far."""
    function = function_of(node.op)
    args = tuple(map(_constants, node.args))
    kwargs = {name: _constants(value) for name, value in node.kwargs}

    def run(values: Values) -> Any:
        given = [resolved(value, values) for value in args]
        return function(*given, **{name: resolved(value, values) for name, value in kwargs.items()})

    return run


def _constants(value: Value) -> Any:
    """``value`` with its constants as torch's, references left."""
    return [_constants(item) for item in value] if isinstance(value, tuple) else constant_of(value)


def resolved(value: Any, values: Values) -> Any:
    """``value`` with its references looked up."""
    if isinstance(value, Ref):
        return values[value.name]
    return [resolved(item, values) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class Versions:
    """What changes when a parameter is replaced, or written to.

    ``held`` keeps the memory, so that no tensor that comes later can have its address.
    """

    seen: tuple[tuple[int, int], ...]
    held: tuple[torch.Tensor, ...] = field(compare=False)

    @staticmethod
    def of(tensors: Sequence[torch.Tensor]) -> Versions:
        """The versions of ``tensors``."""
        return Versions(tuple((t.data_ptr(), _writes(t)) for t in tensors), tuple(t.detach() for t in tensors))

    def still(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether ``tensors`` are what they were; called often."""
        for tensor, (at, count) in zip(tensors, self.seen, strict=True):
            if _writes(tensor) != count or tensor.data_ptr() != at:
                return False
        return True


def _writes(tensor: torch.Tensor) -> int:
    """How often PyTorch has written to a tensor; of what is made in inference mode it keeps no count."""
    return 0 if tensor.is_inference() else tensor._version


class RegionCall:
    """A region with its kernels, as a function of the values so far.

    Args:
        region: what to compute; what depends on its constants alone is kept.
        types: of all values.
        kernels: where to get kernels, and where there are some already.
    """

    def __init__(self, region: Region, types: Mapping[str, Type], kernels: Kernels) -> None:
        self.region = region
        self.kernels = kernels
        self.varying = tuple(name for k, name in enumerate(region.inputs) if k not in region.constants)
        self.fixed = tuple(region.inputs[k] for k in region.constants)
        self.extents = {name: types[name].extents for name in region.inputs}
        self._known: dict[tuple[tuple[int, ...], ...], _Bound] = {}
        self._prepared: dict[Kernel, tuple[Versions, Callable[..., Any]]] = {}

    def __call__(self, values: Values) -> torch.Tensor:
        """The region's result, in memory of its own."""
        bound, arrays = self._arguments(values)
        made, view = empty(bound.output, True)
        bound.kernel(*arrays, out=view if bound.stored == bound.output else view.reshape(bound.stored))
        return self._typed(made)

    def into(self, values: Values, memory: Memory) -> tuple[Floats, Floats]:
        """The region's result as numbers, and the memory it is in, which was taken from ``memory``."""
        bound, arrays = self._arguments(values)
        taken = memory.take(bound.floats)
        made = taken[: bound.floats].reshape(bound.stored)
        bound.kernel(*arrays, out=made)
        return (made if bound.stored == bound.output else made.reshape(bound.output)), taken

    def shown(self, made: Floats) -> torch.Tensor:
        """A result as PyTorch is to see it."""
        return self._typed(torch.from_numpy(made))

    def _typed(self, made: torch.Tensor) -> torch.Tensor:
        """What a kernel made, as truth values if the region is to make them."""
        return made.bool() if self.region.type.dtype == "bool" else made

    def _arguments(self, values: Values) -> tuple[_Bound, list[Floats]]:
        """What to run for the shapes of these inputs, and with what."""
        given = [values[name] for name in self.varying]
        sizes = values.get(SIZES)
        key = (tuple(sizes.values()) if sizes else (), *[value.shape for value in given])
        bound = self._known.get(key)
        if bound is None or not bound.versions.still([values[name] for name in self.fixed]):
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            bound = self._known[key] = self._bind(values)
        return bound, [as_input(value, shape) for value, shape in zip(given, bound.inputs, strict=True)]

    def _bind(self, values: Values) -> _Bound:
        """The kernel for inputs of these shapes, and the parameters as they are now."""
        pairs = [
            pair for name, extents in self.extents.items() for pair in zip(extents, values[name].shape, strict=True)
        ]
        sizes = {**solve(pairs), **values.get(SIZES, {})}
        self.kernels.solve([self.region], sizes, f"{self.region.name} has sizes {sizes}")
        shapes = dict(zip(self.region.inputs, self.region.shapes(sizes), strict=True))
        stored = tuple(extent.value(sizes) for extent in self.region.output_extents)
        return _Bound(
            self._prepare(values, sizes, shapes),
            tuple(shapes[name] for name in self.varying),
            stored,
            math.prod(stored),
            tuple(extent.value(sizes) for extent in self.region.type.extents),
            self._versions(values),
        )

    def _prepare(
        self, values: Values, sizes: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
    ) -> Callable[..., Any]:
        """The kernel with the parameters as they are now; shapes that share a kernel share what is made of them."""
        kernel = self.kernels.kernel(self.region, sizes)
        if not self.fixed:
            return kernel
        versions = self._versions(values)
        known = self._prepared.get(kernel)
        if known is None or known[0] != versions:
            names = {f"in{k}": self.region.inputs[k] for k in self.region.constants}
            constants = {given: as_input(values[name], shapes[name]) for given, name in names.items()}
            known = self._prepared[kernel] = versions, kernel.prepare(**constants)
        return known[1]

    def _versions(self, values: Values) -> Versions:
        return Versions.of([values[name] for name in self.fixed])

    def refresh(self) -> None:
        """Forget what was made of constants."""
        self._known.clear()
        self._prepared.clear()


_MOST_SHAPES = 256
"""How many combinations of input shapes a region remembers."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """A region for inputs of certain shapes: its kernel, the shapes at its border, the parameters' versions."""

    kernel: Callable[..., Any]
    inputs: tuple[tuple[int, ...], ...]
    stored: tuple[int, ...]
    floats: int
    output: tuple[int, ...]
    versions: Versions


def as_input(value: torch.Tensor | Floats, shape: tuple[int, ...]) -> Floats:
    """A value in the shape in which a kernel reads it, in place if it is contiguous.

    Raises:
        ArrayError: a tensor that is not dense, or not on the CPU.
    """
    if isinstance(value, np.ndarray):
        return value if value.shape == shape else value.reshape(shape)
    if not value.is_cpu or value.layout is not torch.strided:
        raise ArrayError(f"a tensor on device {value.device} with layout {value.layout}", expected="dense, on the CPU")
    floats = value if value.dtype is torch.float32 else value.float()
    if floats.requires_grad:
        floats = floats.detach()
    if floats.is_neg():
        floats = floats.resolve_neg()
    # NumPy changes shapes in a sixth of the time that PyTorch takes
    array = (floats if floats.is_contiguous() else floats.contiguous()).numpy()
    return array if array.shape == shape else array.reshape(shape)
