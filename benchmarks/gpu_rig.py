"""Where GPU workloads run, and how calls are timed: on a device by its events, or in rehearsal on the processor.

Every call gets the next of several copies of its inputs, which together are larger than the second-level cache. Before
each, the device writes some memory: that takes longer than the processor needs to queue the call, the first time after
a wait as well (a quarter of it does not: who came first was up to 0.1 ms slower), so that the time between two events
is the device's own. Who comes first changes.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from benchmarks.gpu_cases import Case
from benchmarks.workloads import Shape

ROTATED_BYTES = 256 * 1024**2
"""What calls take turns with: more than the second-level cache of any device."""
_FLOATS_WRITTEN = 2**28
_COPIED_FLOATS = 2**30
ROUNDS = 15
_FEWEST_ROUNDS = 3

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Rig:
    """A place to run: torch, and the device that tensors are on, "cuda" or "cpu"."""

    torch: Any
    device: str

    def inputs(self, case: Case, shapes: Sequence[Shape], seed: int = 0) -> list[list[Any]]:
        """As many copies of random inputs as it takes."""
        torch = self.torch
        generator = torch.Generator(self.device).manual_seed(seed)
        size = 4 * sum(map(prod, shapes))
        copies = min(8, 1 + ROTATED_BYTES // size) if self.device == "cuda" else 2
        found: list[list[Any]] = []
        for _ in range(copies):
            drawn = [case.scale * torch.randn(s, device=self.device, generator=generator) for s in shapes]
            if case.positive is not None:
                drawn[case.positive] = drawn[case.positive].abs() + 1.0
            found.append(drawn)
        return found

    def compile(self, call: Call) -> Call:
        """By inductor; in a rehearsal, as it is."""
        return self.torch.compile(call, **({} if self.device == "cuda" else {"backend": "eager"}))

    def times(
        self, calls: Mapping[str, Call], inputs: Sequence[Sequence[Any]], seconds: float, rounds: int = ROUNDS
    ) -> dict[str, list[float]]:
        """Seconds of each call, which take turns; after some rounds, only until ``seconds`` are spent."""
        found: dict[str, list[float]] = {name: [] for name in calls}
        deadline = time.monotonic() + seconds
        for n in range(rounds):
            names = [*calls]
            order = names[n % len(names) :] + names[: n % len(names)]
            turn = {name: partial(calls[name], *inputs[n % len(inputs)]) for name in order}
            for name, spent in (self._events(turn) if self.device == "cuda" else _clock(turn)).items():
                found[name].append(spent)
            if n + 1 >= _FEWEST_ROUNDS and time.monotonic() > deadline:
                break
        return found

    def _events(self, calls: Mapping[str, Call]) -> dict[str, float]:
        cuda = self.torch.cuda
        written = self.torch.empty(_FLOATS_WRITTEN, device=self.device)
        marks: dict[str, tuple[Any, Any]] = {}
        for name, call in calls.items():
            before, after = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            written.zero_()
            before.record()
            call()
            after.record()
            marks[name] = before, after
        cuda.synchronize()
        return {name: before.elapsed_time(after) * 1e-3 for name, (before, after) in marks.items()}

    def copy_bandwidth(self) -> float:
        """GB/s of copying 4 GB, reads and writes counted."""
        count = _COPIED_FLOATS if self.device == "cuda" else 2**16
        source = self.torch.empty(count, device=self.device)
        target = self.torch.empty_like(source)
        times = self.times({"copy": lambda: target.copy_(source)}, [()], 1.0)
        return 2 * 4 * count / sorted(times["copy"])[len(times["copy"]) // 2] * 1e-9

    def free(self) -> None:
        """Give back what torch keeps."""
        if self.device == "cuda":
            self.torch.cuda.empty_cache()


def rig(device: str, tf32: bool = False) -> Rig:
    """With TF32 off everywhere, or on."""
    torch = importlib.import_module("torch")
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.set_grad_enabled(False)
    return Rig(torch, device)


def _clock(calls: Mapping[str, Call]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, call in calls.items():
        started = time.perf_counter()
        call()
        found[name] = time.perf_counter() - started
    return found
