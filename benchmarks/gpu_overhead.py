"""What a call of a kernel for GPUs costs the processor: ``python -m benchmarks.gpu_overhead``, where there is a GPU.

Calls are queued, a few hundred at a time, so that none waits for the device; arrays are small, so that the device keeps
up. Times are medians, of whole calls from Python: the driver's part, which ``cuLaunchKernel`` takes, is in them.
"""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ilang_eq import i
from ilang_eq.cuda import device
from ilang_eq.cuda.kernel import CudaKernel
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

ELEMENTS = 16
_TOGETHER = 400
"""Fewer than a stream takes before the processor has to wait."""
_ROUNDS = 25


def main() -> None:
    for name, call, finish in calls(CudaKernel(lower(wire(i("i+i~i"))))):
        print(f"{name}: {microseconds(call, finish):.2f} µs", flush=True)


def calls(kernel: CudaKernel) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """What to time, by name, and what waits for it."""
    finish = device.cupy().cuda.Device().synchronize
    x, y, out = device.place([np.ones(ELEMENTS, np.float32) for _ in range(3)])
    yield "CuPy arrays, out=", lambda: kernel(x, y, out=out), finish
    yield "CuPy arrays", lambda: kernel(x, y), finish
    yield "CuPy arrays, a graph's replay", kernel.capture(x, y, out=out), finish
    if importlib.util.find_spec("torch") is not None:
        yield from _torch_calls(kernel)


def _torch_calls(kernel: CudaKernel) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    torch: Any = importlib.import_module("torch")
    if torch.cuda.is_available():
        a, b, into = (torch.ones(ELEMENTS, device="cuda") for _ in range(3))
        yield "torch tensors, out=", lambda: kernel(a, b, out=into), torch.cuda.synchronize
        yield "torch tensors", lambda: kernel(a, b), torch.cuda.synchronize
        yield "torch.add, out=", lambda: torch.add(a, b, out=into), torch.cuda.synchronize


def microseconds(call: Callable[[], Any], finish: Callable[[], Any]) -> float:
    """The median time of a call."""
    call()
    finish()
    found: list[float] = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        for _ in range(_TOGETHER):
            call()
        found.append((time.perf_counter() - started) / _TOGETHER)
        finish()
    return statistics.median(found) * 1e6


if __name__ == "__main__":
    main()
