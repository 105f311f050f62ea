"""How fast a kernel is, and how fast it could be: warm calls, timed in turn.

Times are of whole calls from Python; with CuPy arrays, of the device, by its events. Calls so short that the clock's
grain would show are timed several together. A kernel of this package writes into the output of its first call, and has
prepared the inputs that it was optimised to find constant; other functions allocate theirs.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ilang_eq.errors import OptionError
from ilang_eq.text_table import text_table, time_text
from ilang_eq.work import Work, work_of

if TYPE_CHECKING:
    from ilang_eq.optimized import Optimized

Clock: TypeAlias = Callable[[Callable[[], object]], float]
"""Seconds that a function takes."""

REPEATS = 20
WARM_UP = 3
_SHORT_S = 1e-4
"""A sample is of as many calls as take this long."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds a call, sample by sample."""

    name: str
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.samples)

    @property
    def mean(self) -> float:
        """Their mean."""
        return statistics.fmean(self.samples)

    @property
    def deviation(self) -> float:
        """Their standard deviation; 0 for a single one."""
        return statistics.stdev(self.samples) if len(self.samples) > 1 else 0.0

    @property
    def quartiles(self) -> tuple[float, float]:
        """The lower and the upper quartile."""
        if len(self.samples) == 1:
            return self.samples[0], self.samples[0]
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return low, high

    @property
    def iqr(self) -> float:
        """From the lower quartile to the upper."""
        low, high = self.quartiles
        return high - low


@dataclass(frozen=True, slots=True)
class Bench:
    """Timings of one kernel, and what they mean. Rates are at the median.

    Args:
        timing: of its calls.
        work: what the component, as it was given, has to do. A schedule that saves operations exceeds what is possible.
        least_seconds: what the machine needs for the work of the given or of the chosen component, whichever is less.
    """

    timing: Timing
    work: Work
    least_seconds: float

    @property
    def gflops(self) -> float:
        """Billions of operations a second."""
        return self.work.operations / self.timing.median * 1e-9

    @property
    def gb_s(self) -> float:
        """Compulsory traffic in GB/s: every input and output once."""
        return self.work.bytes / self.timing.median * 1e-9

    @property
    def fraction(self) -> float:
        """How much of the machine's limit is reached: 1 if no kernel could be faster."""
        return self.least_seconds / self.timing.median

    def __str__(self) -> str:
        low, high = self.timing.quartiles
        rows = [
            ("median", time_text(self.timing.median)),
            ("quartiles", f"{time_text(low)} to {time_text(high)}"),
            ("mean", time_text(self.timing.mean)),
            ("standard deviation", time_text(self.timing.deviation)),
            ("samples", str(len(self.timing.samples))),
            ("operations", f"{self.gflops:.4g} GFLOP/s"),
            ("compulsory bytes", f"{self.gb_s:.4g} GB/s"),
            ("of the machine's limit", f"{self.fraction:.1%}"),
        ]
        return text_table((self.timing.name, ""), rows)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Candidates timed in turn, in the order given."""

    timings: tuple[Timing, ...]

    @property
    def fastest(self) -> Timing:
        """The one with the least median."""
        return min(self.timings, key=lambda t: t.median)

    def __str__(self) -> str:
        best = self.fastest.median
        header = ("candidate", "median", "quartiles", "mean", "std", "ratio")
        return text_table(header, [(*_cells(t), f"{t.median / best:.2f}") for t in self.timings])


def _cells(timing: Timing) -> tuple[str, ...]:
    low, high = timing.quartiles
    spread = f"{time_text(low)} – {time_text(high)}"
    return timing.name, time_text(timing.median), spread, time_text(timing.mean), time_text(timing.deviation)


def bench(best: Optimized, arrays: Sequence[Any], repeats: int = REPEATS, warm_up: int = WARM_UP) -> Bench:
    """Time ``best`` on ``arrays``, or on random ones of the shapes it was optimised for if there are none.

    Raises:
        ArrayError, BuildError: as a call does.
        OptionError: fewer than one repeat.
    """
    from ilang_eq.backends import TARGETS
    from ilang_eq.lang.shapes import infer
    from ilang_eq.lang.wiring import wire
    from ilang_eq.measure import random_inputs

    arrays = arrays or TARGETS[best.target]().place(random_inputs(best.extents, best.component.inputs, seed=0))
    given, chosen = wire(best.baseline.component), wire(best.component)
    extents = infer(given).bind([tuple(array.shape) for array in arrays])
    (timing,) = _timed({best.target: best}, arrays, repeats, warm_up, seed=0)
    work = work_of(given, extents)
    return Bench(timing, work, min(_least_seconds(best, w) for w in (work, work_of(chosen, extents))))


def _least_seconds(best: Optimized, work: Work) -> float:
    """What the machine that ``best`` is for needs at least for ``work``."""
    from ilang_eq.extract.gpu_machine import chosen_gpu
    from ilang_eq.extract.models import MODELS

    if best.target == "cuda":
        return work.least_seconds_of_gpu(chosen_gpu(), best.precision)
    return work.least_seconds(MODELS[best.target](best.threads, best.precision).machine, best.threads)


def compare(
    candidates: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]],
    *arrays: Any,
    repeats: int = REPEATS,
    warm_up: int = WARM_UP,
    seed: int = 0,
) -> Comparison:
    """Time several functions of the same arrays, in turn, so that a change of the machine's mood meets all alike.

    Args:
        candidates: by name; those without get the text of their schedule, or their number.
        repeats: rounds; in each every candidate has its turn, in a random order.
        warm_up: calls of each before the first round.
        seed: of the orders.

    Raises:
        OptionError: no candidates, or fewer than one repeat.
    """
    named = candidates if isinstance(candidates, Mapping) else {f"{n}": c for n, c in enumerate(candidates)}
    return Comparison(tuple(_timed(named, arrays, repeats, warm_up, seed)))


def _timed(
    candidates: Mapping[str, Callable[..., Any]], arrays: Sequence[Any], repeats: int, warm_up: int, seed: int
) -> list[Timing]:
    if not candidates:
        raise OptionError("nothing to time", expected="at least one candidate")
    if repeats < 1 or warm_up < 1:
        raise OptionError(f"{repeats} repeats after {warm_up} warm-up calls", expected="at least one of each")
    clock = _clock(arrays)
    calls = {name: _call(candidate, arrays) for name, candidate in candidates.items()}
    together = {name: _together(call, clock, warm_up) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    order, shuffled = list(calls), random.Random(seed)
    for _ in range(repeats):
        shuffled.shuffle(order)
        for name in order:
            samples[name].append(_sample(calls[name], clock, together[name]))
    return [Timing(name, tuple(found)) for name, found in samples.items()]


def _call(candidate: Callable[..., Any], arrays: Sequence[Any]) -> Callable[[], Any]:
    """A call of ``candidate``; one of this package's kernels writes where it wrote first, its constants prepared."""
    from ilang_eq.measure import recurring_call
    from ilang_eq.optimized import Optimized, Schedule

    match candidate:
        case Optimized(kernel=kernel, constants=constants):
            call = recurring_call(kernel, arrays, constants)
        case Schedule():
            call = partial(candidate.compile(), *arrays)
        case _:
            return lambda: candidate(*arrays)
    out = call()
    return lambda: call(out=out)


def _together(call: Callable[[], Any], clock: Clock, warm_up: int) -> int:
    """How many calls to time together, after ``warm_up`` calls."""
    seconds = min(_sample(call, clock, 1) for _ in range(warm_up))
    return max(1, math.ceil(_SHORT_S / max(seconds, 1e-9)))


def _sample(call: Callable[[], Any], clock: Clock, together: int) -> float:
    def calls() -> None:
        for _ in range(together):
            call()

    return clock(calls) / together


def _clock(arrays: Sequence[Any]) -> Clock:
    """How to time calls on ``arrays``: by events of the device that they are on, or by this processor's clock."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if cupy is not None and any(isinstance(a, cupy.ndarray) for a in arrays):
        from ilang_eq.cuda import device

        return device.seconds
    if torch is not None and any(isinstance(a, torch.Tensor) and a.is_cuda for a in arrays):
        return lambda calls: _elapsed(calls, torch.cuda.synchronize)
    return lambda calls: _elapsed(calls, lambda: None)


def _elapsed(calls: Callable[[], object], finish: Callable[[], None]) -> float:
    started = time.perf_counter()
    calls()
    finish()
    return time.perf_counter() - started
