"""Random components under random schedules: lowered, run, and compared with the same without a schedule.

    python -m pytest -m long tests/test_random_programs.py      # 100,000 programs, then 2,000 compiled

A schedule may be refused; then there is nothing to compare, but nothing may crash either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from ilang_eq.c.kernel import CKernel
from ilang_eq.errors import ScheduleError
from ilang_eq.lang.interpreter import interpret
from ilang_eq.lower import lower
from ilang_eq.lower.check import check
from ilang_eq.lower.fills import in_first_blocks
from ilang_eq.lower.in_place import in_place
from ilang_eq.lower.ir import Program
from tests.lower.execute import execute
from tests.random_programs import Case, random_case


def lowered(case: Case) -> Program | None:
    """The scheduled program, checked; None where the schedule is refused."""
    try:
        program = lower(case.scheduled, alternatives=False)
    except ScheduleError:
        return None
    check(program)
    return program


def tame(case: Case) -> list[np.ndarray] | None:
    """The right results, unless they are so large that rounding decides, or not finite."""
    right = interpret(case.plain, case.arrays)
    return list(right) if all(np.isfinite(r).all() and (np.abs(r) < 1e4).all() for r in right) else None


def compare(seeds: Iterable[int], compiled: bool) -> tuple[int, int]:
    """How many programs were compared, and how many of these have online repairs."""
    compared = online = 0
    for seed in seeds:
        case = random_case(seed)
        program, right = lowered(case), tame(case)
        if program is None or right is None:
            continue
        placed = in_place(program)
        placed = replace(placed, kernels=tuple(map(in_first_blocks, placed.kernels)))
        check(placed)
        got = CKernel(program, 2)(*case.arrays) if compiled else execute(program, case.arrays)
        results = got if isinstance(got, tuple) else (got,)
        if placed != program and not compiled:
            for mine, before in zip(execute(placed, case.arrays), results, strict=True):
                np.testing.assert_array_equal(mine, before, err_msg=f"seed {seed}, as for C")
        tolerance = 2e-3 if compiled else 1e-6
        for mine, theirs in zip(results, right, strict=True):
            scale = max(1.0, float(np.abs(theirs).max(initial=0)))
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * scale, err_msg=f"seed {seed}")
        compared += 1
        online += bool(program.corrections)
    return compared, online


def test_a_sample_in_the_executor() -> None:
    compared, online = compare(range(1200), compiled=False)
    assert compared > 400
    assert online > 10, "the sample must reach online repairs"


def test_a_sample_compiled() -> None:
    compared, _ = compare(range(10_000, 10_050), compiled=True)
    assert compared > 15


@pytest.mark.long
def test_many_in_the_executor() -> None:
    compared, online = compare(range(100_000), compiled=False)
    print(f"{compared} of 100,000 compared, {online} with online repairs")


@pytest.mark.long
def test_many_compiled() -> None:
    compared, online = compare(range(200_000, 202_000), compiled=True)
    print(f"{compared} of 2,000 compared, {online} with online repairs")
