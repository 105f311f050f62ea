"""Kernels found by the cost model alone, against NumPy and PyTorch: interleaved, warm, medians with quartiles.

    python benchmarks/cpu.py [--threads N] [--rounds N] [name ...]

PyTorch is optional. The error of every result against float64 is printed. Ours writes into a reused ``out=``; the peers
allocate their outputs.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ilang_eq import Component, I, i, optimize

Arrays = Sequence[np.ndarray]
Peer = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """What to compute, at which shapes, and what others call it."""

    name: str
    component: Component
    shapes: tuple[tuple[int, ...], ...]
    numpy: Peer
    torch: Callable[[Any], dict[str, Peer]]


def softmax_component() -> Component:
    return (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")


def numpy_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def workloads() -> list[Workload]:
    matmul = i("ik*kj~ijk") >> i("+ijk~ij")
    scores = i("ik*jk~ijk") >> i("+ijk~ij")
    attention = scores >> softmax_component() >> i("ij*jk~ikj") >> i("+ikj~ik")
    mlp = matmul >> i("ij+j~ij") >> i("0>ij~ij")
    pointwise = i("i*i~i") >> i("i+i~i") >> i("i/i~i") >> i("^i~i")
    chain = matmul >> matmul >> matmul >> i("ij*j~ij") >> i("+ij~i")
    squares = i("ij*ij~ij") >> i("+ij~i")
    rms = (I & ((I & I) >> squares)) >> i("ij/i~ij") >> matmul
    lse = (((I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> i("+ij~i") >> i("$i~i")) & i(">ij~i")) >> i("i+i~i")
    n = 16_000_000
    return [
        Workload("matmul", matmul, ((1024, 1024),) * 2, np.matmul, lambda t: {"eager": t.matmul}),
        Workload(
            "softmax",
            softmax_component(),
            ((4096, 4096),),
            numpy_softmax,
            lambda t: {"eager": lambda x: t.softmax(x, 1)},
        ),
        Workload(
            "attention",
            attention,
            ((2048, 64),) * 3,
            lambda q, k, v: numpy_softmax(q @ k.T) @ v,
            lambda t: {
                "eager": lambda q, k, v: t.softmax(q @ k.T, 1) @ v,
                "sdpa": lambda q, k, v: t.nn.functional.scaled_dot_product_attention(
                    q[None, None], k[None, None], v[None, None], scale=1.0
                )[0, 0],
            },
        ),
        Workload(
            "matmul+bias+relu",
            mlp,
            ((256, 1024), (1024, 1024), (1024,)),
            lambda x, w, b: np.maximum(x @ w + b, 0),
            lambda t: {"eager": lambda x, w, b: t.relu(x @ w + b)},
        ),
        Workload(
            "pointwise",
            pointwise,
            ((n,),) * 4,
            lambda a, b, c, d: np.exp((a * b + c) / d),
            lambda t: {"eager": lambda a, b, c, d: t.exp((a * b + c) / d)},
        ),
        Workload(
            "chain",
            chain,
            ((1024, 1024),) * 4 + ((1024,),),
            lambda a, b, c, d, x: a @ b @ c @ d @ x,
            lambda t: {"eager": lambda a, b, c, d, x: a @ b @ c @ d @ x},
        ),
        Workload(
            "rms+linear",
            rms,
            ((1024, 1024), (1024, 1024)),
            lambda x, w: (x / (x * x).sum(1, keepdims=True)) @ w,
            lambda t: {"eager": lambda x, w: (x / (x * x).sum(1, keepdim=True)) @ w},
        ),
        Workload(
            "logsumexp",
            lse,
            ((4096, 4096),),
            lambda x: np.log(np.exp(x - x.max(1, keepdims=True)).sum(1)) + x.max(1),
            lambda t: {"eager": lambda x: t.logsumexp(x, 1)},
        ),
    ]


def timed(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, tuple[float, float, float]]:
    """Quartiles of each function's seconds, called in turn."""
    spent: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(rounds):
        for name, function in functions.items():
            started = time.perf_counter()
            function()
            spent[name].append(time.perf_counter() - started)
    quartiles = {name: statistics.quantiles(times, n=4) for name, times in spent.items()}
    return {name: (q[0], q[1], q[2]) for name, q in quartiles.items()}


def run(workload: Workload, threads: int, rounds: int) -> dict[str, Any]:
    """One row of the table."""
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.standard_normal(s, dtype=np.float32)) for s in workload.shapes]
    if workload.name == "pointwise":
        arrays[-1] = np.abs(arrays[-1]) + 1
    best = optimize(workload.component, workload.shapes, threads=threads)
    result = best(*arrays)
    right = workload.numpy(*(a.astype(np.float64) for a in arrays))
    error = float(np.abs(result - right).max() / np.abs(right).max())
    functions: dict[str, Callable[[], Any]] = {
        "ours": lambda: best(*arrays, out=result),
        "numpy": lambda: workload.numpy(*arrays),
    }
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        torch.set_num_threads(threads)
        tensors = [torch.from_numpy(a) for a in arrays]
        for name, peer in workload.torch(torch).items():
            functions[f"torch {name}"] = lambda peer=peer: peer(*tensors)
    times = timed(functions, rounds)
    ratio = min(t[1] for name, t in times.items() if name != "ours") / times["ours"][1]
    print(f"\n{workload.name} {workload.shapes}, {threads} threads: ratio {ratio:.2f}, error {error:.1e}")
    for name, (low, middle, high) in times.items():
        print(f"  {name:12s} {middle * 1e3:9.2f} ms  [{low * 1e3:.2f}, {high * 1e3:.2f}]")
    print(f"  {best}")
    row = {"workload": workload.name, "threads": threads, "ratio": ratio, "error": error, "schedule": str(best)}
    return row | {"seconds": times, "predicted": best.cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(options.threads)
    print(f"{platform.processor() or platform.machine()}, {options.threads} threads")
    chosen = [w for w in workloads() if not options.names or w.name in options.names]
    rows = [run(workload, options.threads, options.rounds) for workload in chosen]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
