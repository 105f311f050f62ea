"""Who takes part, and what each has to offer: the table that ``cpu`` and its workers share."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.workloads import Workload

SHORTEST = 1e-4
"""Calls are repeated until they take this many seconds together."""
MOST_CALLS = 256


@dataclass(frozen=True, slots=True)
class Prepared:
    """A workload that is ready to run.

    Args:
        cold: one call that allocates what it returns.
        warm: one call that writes into memory used before; None if the library cannot.
        as_numpy: turns what a call returns into an array.
        schedule: the 𝚒 text that runs, if it is ours.
        predicted: the cost model's seconds for it.
    """

    cold: Callable[[], Any]
    warm: Callable[[], Any] | None
    as_numpy: Callable[[Any], np.ndarray]
    schedule: str | None = None
    predicted: float | None = None

    def call(self, kind: str) -> Callable[[], Any] | None:
        """``cold`` or ``warm`` by name."""
        return {"cold": self.cold, "warm": self.warm}[kind]


class Prepare(Protocol):
    """What a contestant's module has under the name ``prepare``; None if it has no way for ``workload``."""

    def __call__(
        self, mode: str, workload: Workload, arrays: Sequence[np.ndarray], threads: int, schedule: str | None
    ) -> Prepared | None: ...


@dataclass(frozen=True, slots=True)
class Contestant:
    """A library in one of its modes.

    Args:
        name: as it is reported.
        library: what has to be installed.
        module: of this package, which imports it.
        mode: handed to the module's ``prepare``.
        patience_s: how long preparing one workload may take, compiling included.
    """

    name: str
    library: str
    module: str
    mode: str
    patience_s: float

    def prepare(self) -> Prepare:
        """The module's function. Raises ImportError without the library."""
        return importlib.import_module(self.module).prepare


OURS = Contestant("ours", "ilang_eq", "benchmarks.ours", "", 300)
PEERS = (
    Contestant("numpy", "numpy", "benchmarks.peers.numpy_peer", "formula", 60),
    Contestant("numpy best", "numpy", "benchmarks.peers.numpy_peer", "best", 60),
    Contestant("torch eager", "torch", "benchmarks.peers.torch_peer", "eager", 60),
    Contestant("torch best", "torch", "benchmarks.peers.torch_peer", "best", 300),
    Contestant("torch.compile", "torch", "benchmarks.peers.torch_peer", "default", 300),
    Contestant("torch max-autotune", "torch", "benchmarks.peers.torch_peer", "max-autotune-no-cudagraphs", 300),
    Contestant("jax", "jax", "benchmarks.peers.jax_peer", "jit", 120),
    Contestant("onnxruntime", "onnxruntime", "benchmarks.peers.onnx_peer", "session", 120),
    Contestant("tinygrad", "tinygrad", "benchmarks.peers.tinygrad_peer", "jit", 60),
)
CONTESTANTS = (OURS, *PEERS)


def seconds(call: Callable[[], Any]) -> float:
    """The time of one call; short ones are repeated, and the mean of the last series counts."""
    calls = 1
    while True:
        started = time.perf_counter()
        for _ in range(calls):
            call()
        spent = time.perf_counter() - started
        if spent >= SHORTEST or calls >= MOST_CALLS:
            return spent / calls
        calls *= 4
