"""``torch.compile(model, backend="ilang_eq")``: PyTorch finds this through an entry point of the package. Loads torch.

For inference on the CPU: where gradients are recorded, tensors are elsewhere, or calls are no ATen calls (control flow,
checks with effects), the graph runs as it is, and one line of log says so. A graph is cut into regions when PyTorch
compiles it. With sizes known only at run time, its kernels are found once for each bucket of extents (``kernels.py``),
and PyTorch compiles nothing again. The logger "ilang_eq.trace" tells every compilation and every optimisation, with the
reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._guards import CompileContext, TracingContext
from torch.fx import GraphModule

from ilang_eq.errors import OptionError, TraceError
from ilang_eq.tracing.capture import from_graph
from ilang_eq.tracing.coverage import coverage
from ilang_eq.tracing.kernels import Kernels
from ilang_eq.tracing.nodes import Argument
from ilang_eq.tracing.partition import partition
from ilang_eq.tracing.prepare import prepared
from ilang_eq.tracing.run import Runner
from ilang_eq.tracing.table import COMPUTED

LOG = logging.getLogger("ilang_eq.trace")

_KERNELS: dict[tuple[int | None, str], Kernels] = {}
"""Kernels by number of threads and effort, shared by all graphs: equal regions of two graphs are optimised once."""

_SEEN: dict[int, tuple[Argument, ...]] = {}
"""The arguments of the last graph of each frame that PyTorch compiled, to say what changed."""


def ilang_eq(
    module: GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Compile one graph.

    Args:
        module: what Dynamo captured.
        example_inputs: its inputs, parameters too.
        options: as ``torch.compile`` takes them: "threads", how many a kernel may use, and "effort", as for ``trace``;
            all cores and "model" if they are missing.

    Raises:
        OptionError: another option, or another effort.
    """
    kernels = _kernels(**_checked(options or {}))
    if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs):
        LOG.warning("a graph runs eagerly: gradients are recorded; call the model inside torch.no_grad()")
        return module.forward
    elsewhere = {x.device.type for x in example_inputs if isinstance(x, torch.Tensor)} - {"cpu"}
    if elsewhere:
        LOG.warning("a graph runs eagerly: it has tensors on device %s, and kernels are for the CPU", min(elsewhere))
        return module.forward

    def compile_calls(calls: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        try:
            return make_boxed_func(_compiled(calls, _parameters(), kernels))
        except TraceError as error:
            LOG.warning("a graph runs eagerly: %s", error.message)
            return make_boxed_func(calls.forward)

    table = {op: how for op, how in core_aten_decompositions().items() if str(op) not in COMPUTED}
    return aot_autograd(fw_compiler=compile_calls, decompositions=table)(module, example_inputs)


def _checked(options: Mapping[str, Any]) -> Mapping[str, Any]:
    unknown = options.keys() - {"threads", "effort"}
    if unknown:
        raise OptionError(f"no option {min(unknown)!r}", legal=("threads", "effort"))
    return options


def _kernels(threads: int | None = None, effort: str = "model") -> Kernels:
    key = threads, effort
    return _KERNELS[key] if key in _KERNELS else _KERNELS.setdefault(key, Kernels(threads, effort))


def _parameters() -> Collection[int]:
    """The positions of inputs that stay the same from call to call, as far as PyTorch says."""
    context = TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    return () if metadata is None else metadata.static_input_indices


def _compiled(calls: GraphModule, held: Collection[int], kernels: Kernels) -> Callable[..., Any]:
    """A graph of ATen calls as a function of all its inputs, parameters too."""
    names = [node.name for node in calls.graph.nodes if node.op == "placeholder"]
    program = prepared(from_graph(calls, {names[k]: ("parameter", "") for k in held}))
    found = partition(program)
    constants = {a.name: getattr(calls, a.target) for a in program.arguments if a.kind == "constant"}
    runner = Runner(found, constants, kernels)
    LOG.info(
        "compiled a graph of %d calls into %d regions, %.1f%% of its operations: %s",
        len(program.nodes),
        len(found.regions),
        100 * coverage(found).fraction,
        _why(program.arguments),
    )
    given = [name for k, name in enumerate(names) if k not in held]
    positions = {name: k for k, name in enumerate(names)}

    def run(*inputs: Any) -> Any:
        parameters = {names[k]: inputs[k] for k in held}
        return runner([inputs[positions[name]] for name in given], parameters)

    return run


def _why(arguments: tuple[Argument, ...]) -> str:
    """Why PyTorch compiles this graph: it is new, or an input is not what it was."""
    current = CompileContext.current_compile_id()
    frame = -1 if current is None or current.frame_id is None else current.frame_id
    tensors = tuple(argument for argument in arguments if argument.type.dtype != "int")
    before = _SEEN.get(frame, ())
    _SEEN[frame] = tensors
    if current is None or not current.frame_compile_id:
        return "first call"
    if len(before) == len(tensors):
        for old, new in zip(before, tensors, strict=True):
            if old.type != new.type:
                return f"input {new.name} was {old.type.dtype} {old.type.shape}, is {new.type.dtype} {new.type.shape}"
    return "a guard failed that is not about shapes; TORCH_LOGS=recompiles says which"
