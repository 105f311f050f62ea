"""PyTorch: eager, its best functions, and compiled; weights are frozen constants for the compiler."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contest import Prepared
from benchmarks.hand_picked import TORCH_BEST, TORCH_INTO
from benchmarks.peers import torch_ops
from benchmarks.workloads import Workload

torch: Any = importlib.import_module("torch")


class _Frozen(torch.nn.Module):
    """A formula with the constant inputs as buffers, which the compiler may lay out anew."""

    def __init__(self, workload: Workload, tensors: Sequence[Any]) -> None:
        super().__init__()
        self.formula = workload.formula
        self.constant = tuple(argument.constant for argument in workload.inputs)
        for n, tensor in enumerate(tensors):
            if self.constant[n]:
                self.register_buffer(f"weight{n}", tensor)

    def forward(self, *given: Any) -> Any:
        rest = iter(given)
        arguments = [getattr(self, f"weight{n}") if fixed else next(rest) for n, fixed in enumerate(self.constant)]
        return self.formula(torch_ops, *arguments)


def prepare(
    mode: str, workload: Workload, arrays: Sequence[np.ndarray], threads: int, schedule: str | None
) -> Prepared | None:
    """``mode`` is eager, best, or a mode of ``torch.compile``; None if there is no ``best`` beyond the formula."""
    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(array) for array in arrays]
    match mode:
        case "eager":
            return _eager(workload, tensors)
        case "best":
            return _best(workload, tensors)
        case _:
            return _compiled(mode, workload, tensors)


def _eager(workload: Workload, tensors: Sequence[Any]) -> Prepared:
    cold = partial(workload.formula, torch_ops, *tensors)
    into = TORCH_INTO.get(workload.component)
    warm = None if into is None else partial(into, torch, cold(), *tensors)
    return Prepared(cold, warm, _as_numpy)


def _best(workload: Workload, tensors: Sequence[Any]) -> Prepared | None:
    call = TORCH_BEST.get(workload.component)
    if call is None:
        return None
    return Prepared(partial(call, torch, *tensors), None, _as_numpy)


def _compiled(mode: str, workload: Workload, tensors: Sequence[Any]) -> Prepared:
    torch._dynamo.reset()
    # without weights there is nothing to freeze, and the compiler caches its graphs
    torch._inductor.config.freezing = any(argument.constant for argument in workload.inputs)
    module = torch.compile(_Frozen(workload, tensors).eval(), mode=mode, dynamic=False)
    given = [tensor for tensor, argument in zip(tensors, workload.inputs, strict=True) if not argument.constant]

    @torch.no_grad()
    def run() -> Any:
        return module(*given)

    return Prepared(run, None, _as_numpy)


def _as_numpy(result: Any) -> np.ndarray:
    return result.numpy()
