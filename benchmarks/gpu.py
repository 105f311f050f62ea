"""Kernels for a GPU against PyTorch's, at GPU sizes: builds, checks and times every workload in one run.

    python -m benchmarks.gpu                      # on a machine with a device, torch and CuPy: under 8 minutes
    python -m benchmarks.gpu --dry-run            # anywhere: optimises and compiles, and says what the model expects

Times are medians of device events, of calls that take turns; each call gets the next of several copies of its inputs,
which together are larger than the second-level cache. TF32 is off for all. Results are checked against float64.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import formulas
from benchmarks.workloads import COMPONENTS
from ilang_eq import ILangError, optimize
from ilang_eq.cuda.build import compiled
from ilang_eq.cuda.kernel import CudaKernel
from ilang_eq.lang.reading import read_component
from ilang_eq.optimized import Optimized

ROUNDS = 15
BUDGET_S = 25.0
ROTATED_BYTES = 256 * 1024**2
"""Inputs that calls take turns with: more than the second-level cache of any device."""
TOLERANCE = 2e-3
"""Of the largest value of the float64 result, in float32 with sums of up to 128 K terms."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row: a component of ``benchmarks/components``, shapes, the same in torch, and the scale of the inputs."""

    name: str
    component: str
    shapes: tuple[tuple[int, ...], ...]
    formula: Callable[..., Any]
    scale: float = 1.0

    @property
    def text(self) -> str:
        """The component, as 𝚒 text."""
        return (COMPONENTS / f"{self.component}.i").read_text(encoding="utf-8")


def _heads(width: int) -> tuple[tuple[int, ...], ...]:
    return ((16, 4096, width),) * 3


CASES = (
    Case("attention 16x4096x64", "attention_heads", _heads(64), formulas.attention, 0.35),
    Case("attention 16x4096x128", "attention_heads", _heads(128), formulas.attention, 0.3),
    Case("matmul 4096", "matmul", ((4096, 4096),) * 2, formulas.matmul),
    Case("matmul 8192", "matmul", ((8192, 8192),) * 2, formulas.matmul),
    Case("softmax 16384", "softmax", ((16384, 16384),), formulas.softmax),
    Case("pointwise 256M", "pointwise", ((2**28,),) * 4, formulas.pointwise),
    Case("gaussian sum 65536x3", "gaussian_sum", ((65536, 3), (65536, 3), (65536,)), formulas.gaussian_sum),
    Case("cross-entropy 8192x4096x128K", "linear_logsumexp", ((8192, 4096), (131072, 4096)), formulas.linear_logsumexp,
         0.1),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="optimise and compile only; needs no device")
    parser.add_argument("--arch", type=int, default=90, help="the architecture to compile for in a dry run")
    parser.add_argument("--only", default="", help="workloads whose names contain this")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds to optimise each workload")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if options.only in case.name]
    if not options.dry_run:
        print(f"copy: {copy_bandwidth():.0f} GB/s")
    for case in cases:
        started = time.perf_counter()
        try:
            best = optimize(
                read_component(case.text), case.shapes, target="cuda", budget_s=options.budget, database=False
            )
            spent = time.perf_counter() - started
            print(f"\n{case.name}: optimised in {spent:.1f} s, the model expects {best.cost * 1e3:.3f} ms\n  {best}")
            report = dry(best, options.arch) if options.dry_run else timed(best, case)
            print("\n".join(f"  {line}" for line in report), flush=True)
        except ILangError as error:
            print(f"{case.name}: {error}", flush=True)


def dry(best: Optimized, arch: int) -> list[str]:
    """What the compiler says of every kernel."""
    kernel = best.kernel
    if not isinstance(kernel, CudaKernel):
        raise TypeError("not a kernel for CUDA")
    _, usage = compiled(kernel.source, arch)
    threads = {entry.name: entry.block.threads for entry in kernel.module.entries}
    return [
        f"{name}: {threads[name]} threads, {used.registers} registers, {used.spilled} bytes spilled"
        for name, used in usage.items()
    ]


def timed(best: Optimized, case: Case) -> list[str]:
    """Medians of ours and of torch's, and how far ours is from float64."""
    torch = importlib.import_module("torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    ops = importlib.import_module("benchmarks.peers.torch_ops")
    bytes_each = sum(4 * _size(shape) for shape in case.shapes)
    copies = min(8, 1 + ROTATED_BYTES // bytes_each)
    inputs = [[case.scale * torch.randn(shape, device="cuda") for shape in case.shapes] for _ in range(copies)]
    # what would divide stays away from zero
    inputs = [[*some[:-1], some[-1].abs() + 1.0] if case.component == "pointwise" else some for some in inputs]

    def formula(*arrays: Any) -> Any:
        return case.formula(ops, *arrays)

    calls: dict[str, Callable[..., Any]] = {"ours": best, "torch": formula, "torch.compile": torch.compile(formula)}
    if case.component == "attention_heads":
        sdpa = torch.nn.functional.scaled_dot_product_attention
        calls["torch SDPA"] = lambda q, k, v: sdpa(q[None], k[None], v[None], scale=1.0)[0]
    lines = [f"largest error: {_error(torch, best, formula, inputs[0]):.1e} of the largest value"]
    times: dict[str, list[float]] = {}
    for name, call in calls.items():
        try:
            times[name] = _events(torch, call, inputs)
        except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
            lines.append(f"{name}: {str(error).splitlines()[0]}")
    return lines + [f"{name}: {statistics.median(spent):.3f} ms" for name, spent in times.items()]


def _error(torch: Any, best: Optimized, formula: Callable[..., Any], arrays: Sequence[Any]) -> float:
    """Against torch in float64, on at most 256 rows of the first input, which no row of a result needs more of."""
    rows = [array[:256] if n == 0 and array.ndim == 2 else array for n, array in enumerate(arrays)]
    if arrays[0].ndim == 3:
        rows = [array[:2] for array in arrays]
    if arrays[0].ndim == 1:
        rows = [array[: 2**20] for array in arrays]
    right = formula(*(array.double() for array in rows))
    got = best(*(array.contiguous() for array in rows))
    error = float((got - right).abs().max() / right.abs().max())
    if not error < TOLERANCE:
        raise ILangError(f"wrong by {error:.1e} of the largest value")
    return error


def _events(torch: Any, call: Callable[..., Any], inputs: Sequence[Sequence[Any]]) -> list[float]:
    """Milliseconds of each call, warmed up."""
    for arrays in inputs[:2]:
        call(*arrays)
    found: list[float] = []
    for n in range(ROUNDS):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        call(*inputs[n % len(inputs)])
        after.record()
        torch.cuda.synchronize()
        found.append(before.elapsed_time(after))
    return found


def copy_bandwidth() -> float:
    """GB/s of copying 4 GB, reads and writes counted."""
    torch = importlib.import_module("torch")
    source = torch.empty(2**30, device="cuda")
    target = torch.empty_like(source)
    spent = statistics.median(_events(torch, lambda: target.copy_(source), [()]))
    return 2 * source.numel() * 4 / spent / 1e6


def _size(shape: Sequence[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


if __name__ == "__main__":
    main()
