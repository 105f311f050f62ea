from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
import pytest

from ilang_eq.calibrate.probes import Probe, Probes, cycle, ones
from ilang_eq.calibrate.source import RATES

CORE = ("vector_fma_with_add", "clock_ticks", "issued_instructions", "chain", "kernel", "fork_join", "read_all")


@pytest.fixture(scope="module")
def probes() -> Probes:
    return Probes()


def test_every_probe_takes_time(probes: Probes) -> None:
    memory = ones(1 << 16)
    functions = [*(f"{kind}_{rate}" for kind in ("vector", "scalar") for rate in RATES), *CORE]
    asked = [Probe(function, function, 1, memory, threads=2, series_s=1e-6) for function in functions]
    asked.append(Probe("chase", "chase", 1, cycle(1 << 16, 64), series_s=1e-6))
    found = probes.nanoseconds(asked, 1, math.inf)
    assert set(found) == {*functions, "chase"}
    assert all(0 < ns < 1e9 for ns in found.values())


def test_rounds_end_at_the_deadline(probes: Probes) -> None:
    memory = ones(1 << 13)
    past = time.perf_counter()
    assert probes.nanoseconds([Probe("add", "vector_add", 1, memory)], 10**12, past)["add"] > 0


def test_a_vector_is_what_the_compiler_uses(probes: Probes) -> None:
    assert probes.lanes in (4, 8, 16)
    assert probes.vector_registers in (16, 32)


def test_a_cycle_visits_every_line_once() -> None:
    memory = cycle(64 * 100, 64)
    following = memory.view(np.int64)
    at, visited = 0, []
    for _ in range(100):
        visited.append(at)
        at = int(following[at // 2])
    assert at == 0
    assert sorted(visited) == [16 * n for n in range(100)]


def test_a_cycle_goes_through_a_page_before_the_next() -> None:
    memory = cycle(4096 * 3, 64, page=1024)
    following = memory.view(np.int64)
    at, visited = 0, []
    for _ in range(192):
        at = int(following[at // 2])
        visited.append(at * 4 // 1024)
    assert at == 0
    changes = sum(before != after for before, after in pairwise(visited))
    assert changes <= 12
    assert set(visited) == set(range(12))


def test_memory_is_aligned() -> None:
    for memory in (ones(8192), cycle(8192, 64)):
        assert memory.nbytes == 8192
        assert memory.ctypes.data % 4096 == 0
    assert np.all(ones(8192) > 1)
