"""Timings: what is computed from them, and that candidates take turns."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ilang_eq import I, compare, i, optimize
from ilang_eq.bench import Bench, Comparison, Timing
from ilang_eq.errors import OptionError
from ilang_eq.extract.gpu_machine import load_gpu
from ilang_eq.extract.machine import load
from ilang_eq.lang.wiring import wire
from ilang_eq.work import Work, work_of

MATMUL = i("ik*kj~ijk") >> i("+ijk~ij")
SAMPLES = (1.0, 2.0, 3.0, 4.0, 10.0)


def test_statistics() -> None:
    timing = Timing("t", SAMPLES)
    assert (timing.median, timing.mean, timing.quartiles, timing.iqr) == (3.0, 4.0, (2.0, 4.0), 2.0)
    assert timing.deviation == pytest.approx(math.sqrt(12.5))
    single = Timing("t", (2.0,))
    assert (single.median, single.deviation, single.iqr) == (2.0, 0.0, 0.0)


def test_rates_are_at_the_median() -> None:
    result = Bench(Timing("c", SAMPLES), Work(operations=6 * 10**9, bytes=9 * 10**9), least_seconds=1.5)
    assert (result.gflops, result.gb_s, result.fraction) == (2.0, 3.0, 0.5)
    for figure in ("3 s", "2 s to 4 s", "2 GFLOP/s", "3 GB/s", "50.0%"):
        assert figure in str(result)


def test_the_work_of_a_matrix_product() -> None:
    extents = {(0, 0): 5, (0, 1): 7, (1, 0): 7, (1, 1): 3}
    assert work_of(wire(MATMUL), extents) == Work(2 * 5 * 7 * 3, 4 * (5 * 7 + 7 * 3 + 5 * 3))


def test_copies_are_no_work() -> None:
    assert work_of(wire(i("+ij~ji")), {(0, 0): 5, (0, 1): 7}).operations == 0
    assert work_of(wire(i("-ij~ij")), {(0, 0): 5, (0, 1): 7}).operations == 35
    assert work_of(wire(I), {(0, 0): 5}) == Work(0, 20)


def test_the_limit_is_the_scarcer_of_arithmetic_and_memory() -> None:
    machine = replace(load("x86_64_avx512"), cores=2)
    peak, memory = 2 * machine.vector.fma, machine.levels[-1]
    assert Work(10**12, 4).least_seconds(machine, 1) == pytest.approx(10**12 / peak * 1e-9)
    assert Work(10**12, 4).least_seconds(machine, 8) == pytest.approx(10**12 / (2 * peak) * 1e-9)
    assert Work(1, 10**10).least_seconds(machine, 1) == pytest.approx(10**10 / memory.bandwidth * 1e-9)
    assert Work(1, 64).least_seconds(machine, 1) == pytest.approx(64 / machine.levels[0].bandwidth * 1e-9)


def test_the_limit_of_a_gpu() -> None:
    gpu = load_gpu("sm_90")
    cycles = 10**12 / (2 * 132 * 1.92e9)
    assert Work(10**12, 4).least_seconds_of_gpu(gpu) == pytest.approx(cycles / 128)
    assert Work(10**12, 4).least_seconds_of_gpu(gpu, "tf32") == pytest.approx(cycles / 860)
    assert Work(10**12, 4).least_seconds_of_gpu(gpu, "tf32x3") == pytest.approx(3 * cycles / 620)
    assert Work(1, 10**10).least_seconds_of_gpu(gpu) == pytest.approx(10**10 / gpu.dram_gbs * 1e-9)
    assert Work(1, 10**6).least_seconds_of_gpu(gpu) == pytest.approx(10**6 / gpu.l2_gbs * 1e-9)


def test_bench_of_a_kernel() -> None:
    best = optimize(MATMUL, [(8, 6), (6, 4)], threads=1)
    result = best.bench(repeats=3)
    assert len(result.timing.samples) == 3
    assert result.work.operations == 2 * 8 * 6 * 4
    other = best.bench(np.ones((2, 3), np.float32), np.ones((3, 5), np.float32), repeats=2)
    assert other.work.operations == 2 * 2 * 3 * 5
    assert other.fraction is not None
    assert other.fraction > 0


def test_candidates_take_turns() -> None:
    calls: list[str] = []

    def slow(x: float) -> None:
        calls.append("slow")
        time.sleep(0.002)

    def slower(x: float) -> None:
        calls.append("slower")
        time.sleep(0.02)

    found = compare({"slow": slow, "slower": slower}, 1.0, repeats=4, warm_up=1)
    timed = calls[2:]
    assert [sorted(timed[k : k + 2]) for k in range(0, 8, 2)] == [["slow", "slower"]] * 4
    assert [t.name for t in found.timings] == ["slow", "slower"]
    assert found.fastest.name == "slow"
    assert "candidate" in str(found)


def test_short_calls_are_timed_together() -> None:
    calls: list[int] = []
    compare([calls.append], 1, repeats=2, warm_up=5)
    assert len(calls) > 5 + 2


def test_schedules_and_functions_compare() -> None:
    best = optimize(MATMUL, [(8, 6), (6, 4)], threads=1)
    arrays = [np.ones((8, 6), np.float32), np.ones((6, 4), np.float32)]
    found = compare([best, *best.candidates(2), np.matmul], *arrays, repeats=2)
    assert isinstance(found, Comparison)
    assert [t.name for t in found.timings] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(("candidates", "repeats"), [([], 3), ([abs], 0)])
def test_nothing_to_time(candidates: list[Any], repeats: int) -> None:
    with pytest.raises(OptionError):
        compare(candidates, 1.0, repeats=repeats)
