"""Lowering against the reference: what it accepts we accept and compute right; kernels and corrections agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ilang_eq.errors import ILangError
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.check import check
from ilang_eq.lower.ir import Program
from ilang_eq.lower.plan import summarise
from tests.conformance_cases import array, cases, component, inputs
from tests.lower.execute import execute

DIFFERENT_CORRECTIONS = {
    # The maximum of one tensor, subtracted from another that happens to have equal extents. The reference pairs their
    # axes by number; here reduced axes align by what they run over, and these have nothing in common: it is recomputed.
    "sched-204",
}

SCHEDULES = cases("schedules.json")
BUGS = cases("upstream_bugs.json")


def agrees(program: Program, case: dict[str, Any], outputs: list[Any]) -> None:
    check(program)
    got = execute(program, inputs(case))
    assert len(got) == len(outputs)
    for mine, theirs in zip(got, outputs, strict=True):
        right = array(theirs)
        assert mine.shape == right.shape
        np.testing.assert_allclose(mine, right, rtol=3e-4, atol=5e-5, equal_nan=True)


@pytest.mark.parametrize("case", [c for c in SCHEDULES if c["ok"]], ids=lambda c: c["id"])
def test_accepted(case: dict[str, Any]) -> None:
    program = lower(wire(component(case["tree"])))
    for numeric in case["numeric"]:
        agrees(program, numeric, numeric["outputs"])
    assert len(program.kernels) == case["lowering"]["kernels"]
    mine = {(c.accumulator, c.statistic, c.kind) for c in program.corrections}
    theirs = {(o["accumulator"], o["statistic"], o["kind"]) for o in case["lowering"]["online"]}
    assert (mine == theirs) is (case["id"] not in DIFFERENT_CORRECTIONS)


@pytest.mark.parametrize("case", [c for c in SCHEDULES if c["ok"]], ids=lambda c: c["id"])
def test_buffers_are_no_larger(case: dict[str, Any]) -> None:
    program = lower(wire(component(case["tree"])))
    for numeric in case["numeric"]:
        extents = {(k, d): n for k, shape in enumerate(numeric["shapes"]) for d, n in enumerate(shape)}
        mine = sorted((_elements(dims) for dims in summarise(program, extents).buffers), reverse=True)
        buffers = case["lowering"]["buffers"]
        theirs = sorted((_elements([_size(d, extents) for d in b["dims"]]) for b in buffers), reverse=True)
        assert len(mine) <= len(theirs)
        assert all(a <= b for a, b in zip(mine, theirs, strict=False))


def _elements(dims: Any) -> int:
    return int(np.prod([int(n) for n in dims]))


def _size(dim: Any, extents: dict[tuple[int, int], int]) -> int:
    match dim:
        case int():
            return dim
        case str():
            k, d = dim.removeprefix("in").split(".")
            return extents[int(k), int(d)]
        case _:
            name, factor = dim["ceil"]
            return -(-_size(name, extents) // factor)


@pytest.mark.parametrize("case", [c for c in SCHEDULES if not c["ok"]], ids=lambda c: c["id"])
def test_refused(case: dict[str, Any]) -> None:
    if case["reject"]["kind"] == "principled":
        with pytest.raises(ILangError):
            lower(wire(component(case["tree"])))
        return
    try:
        program = lower(wire(component(case["tree"])))
    except ILangError:
        return
    for numeric in case["if_accepted"]:
        agrees(program, numeric, numeric["outputs"])


@pytest.mark.parametrize("case", BUGS, ids=lambda c: c["id"])
def test_upstream_bug_is_computed_right_or_refused(case: dict[str, Any]) -> None:
    try:
        program = lower(wire(component(case["tree"])))
    except ILangError:
        assert "refuse" in case["acceptable"]
        return
    agrees(program, case, case["outputs"])
