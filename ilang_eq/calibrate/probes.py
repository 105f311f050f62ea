"""Running the microbenchmarks: built, loaded, and timed so that what else the machine does is left out.

Whatever disturbs a probe makes it slower, so the least of its times counts, unless what neighbours take is asked for.
Probes take turns: a disturbance of a second falls on one round of all of them and not on all rounds of one.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np

from ilang_eq.c.build import build
from ilang_eq.calibrate.source import probe_source

Floats = np.ndarray[tuple[int], np.dtype[np.float32]]

SERIES_S = 1.5e-3
_ALIGNMENT = 4096
_WARMING = 3
"""Passes over its memory that warm a probe: caches keep what has been asked for twice."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing to time.

    Args:
        name: of the result.
        function: of the C source.
        units: what one call with ``times`` = 1 does: elements, bytes, cycles, …
        memory: what it works on.
        threads: how many run it.
        warm: whether its memory is read through right before each timing, to be in the cache that it fits.
        series_s: how long one timing takes, about.
        typical: whether the median of its times counts.
    """

    name: str
    function: str
    units: float
    memory: Floats
    threads: int = 1
    warm: bool = True
    series_s: float = SERIES_S
    typical: bool = False


class Probes:
    """The compiled probes.

    Raises:
        BuildError: no compiler, or one that refuses the source.
    """

    def __init__(self) -> None:
        self._library = ctypes.CDLL(str(build(probe_source())))

    @property
    def lanes(self) -> int:
        """Floats in a vector, as compiled code uses them."""
        return self._library.lanes()

    @property
    def vector_registers(self) -> int:
        """How many vectors the register file names."""
        return self._library.vector_registers()

    def nanoseconds(self, probes: Iterable[Probe], rounds: int, deadline: float) -> Mapping[str, float]:
        """The least or the typical time a unit takes, by probe; ``rounds`` after the second only until ``deadline``."""
        probes = tuple(probes)
        times = {probe.name: self._enough(probe) for probe in probes}
        found: dict[str, list[float]] = {probe.name: [] for probe in probes}
        for done in range(rounds):
            for probe in probes:
                spent = self._run(probe, times[probe.name]) / times[probe.name] / probe.units
                found[probe.name].append(spent * 1e9)
            if done > 0 and time.perf_counter() > deadline:
                break
        return {probe.name: (median if probe.typical else min)(found[probe.name]) for probe in probes}

    def _enough(self, probe: Probe) -> int:
        """How often a probe has to do its work for one timing."""
        times, spent = 1, self._run(probe, 1)
        while spent < probe.series_s / 4:
            times *= 4
            spent = self._run(probe, times)
        return max(1, round(times * probe.series_s / spent))

    def _run(self, probe: Probe, times: int) -> float:
        call = self._library[probe.function]
        call.restype = ctypes.c_double
        arguments = ctypes.c_void_p(probe.memory.ctypes.data), ctypes.c_int64(probe.memory.nbytes), probe.threads
        if probe.warm:
            self._library.read_all(ctypes.c_int64(_WARMING), *arguments)
        return call(ctypes.c_int64(times), *arguments)


def ones(size: int) -> Floats:
    """``size`` bytes of floats a little above one, which neither overflow nor vanish where they are multiplied."""
    return _aligned(np.full(size // 4 + _ALIGNMENT // 4, np.float32(1.0000001)), size)


def cycle(size: int, line: int, page: int | None = None, seed: int = 0) -> Floats:
    """``size`` bytes in which every ``line`` has the offset in floats of another, all in one random cycle.

    Behind the first offset is the place where the next run begins, so that runs do not repeat one part of the cycle.

    Args:
        page: if given, the cycle goes through a page of so many bytes before it comes to the next, so that finding
            pages takes next to nothing of its time.
    """
    memory = _aligned(np.zeros(size // 4 + _ALIGNMENT // 4, np.float32), size)
    random = np.random.default_rng(seed)
    within = (page or size) // line
    pages = random.permutation(size // line // within)[:, None] * within
    lines = pages + random.permuted(np.tile(np.arange(within), (len(pages), 1)), axis=1)
    order = lines.ravel().astype(np.int64) * (line // 4)
    following = memory.view(np.int64)
    following[order // 2] = np.roll(order, -1)
    return memory


def _aligned(memory: Floats, size: int) -> Floats:
    start = -memory.ctypes.data % _ALIGNMENT // 4
    return memory[start : start + size // 4]
