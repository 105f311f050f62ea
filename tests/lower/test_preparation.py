"""Programs split for constant inputs compute what they did."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from ilang_eq import Component, I, i
from ilang_eq.errors import ScheduleError
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.check import check
from ilang_eq.lower.ir import Program
from ilang_eq.lower.preparation import Preparation, prepare
from tests.lower.execute import execute
from tests.random_programs import random_case


def execute_in_two(split: Preparation, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    check(split.first)
    check(split.rest)
    kept = execute(split.first, [arrays[k] for k in split.constants])
    return execute(split.rest, [*(arrays[k] for k in (*split.varying, *split.fixed)), *kept])


def test_random_programs_for_random_constants() -> None:
    moved = 0
    for seed in range(600):
        case = random_case(seed)
        try:
            program = lower(case.scheduled, alternatives=False)
        except ScheduleError:
            continue
        rng = random.Random(seed)
        constants = [k for k in range(len(program.inputs)) if rng.random() < 0.7]
        split = prepare(program, constants)
        moved += bool(split.first.kernels)
        assert len(split.first.kernels) + len(split.rest.kernels) == len(program.kernels)
        for got, want in zip(execute_in_two(split, case.arrays), execute(program, case.arrays), strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}")
    assert moved > 30


def lowered(component: Component) -> Program:
    return lower(wire(component))


PACKED = i("+kj~jk") >> i("jk*ik~ijk") >> i("+ijk~ij")
"""A product with a transposed copy of its first input."""


def test_a_copy_of_a_constant_is_made_once() -> None:
    split = prepare(lowered(PACKED), (0,))
    assert [len(split.first.kernels), len(split.rest.kernels)] == [1, 2]
    assert (split.constants, split.varying, split.fixed) == ((0,), (1,), ())
    assert split.rest.ranks == (2, 2), "the input, and the copy; not the constant itself"


def test_what_reads_other_inputs_stays() -> None:
    split = prepare(lowered(PACKED), (1,))
    assert not split.first.kernels
    assert (split.varying, split.fixed) == ((0,), (1,))


def test_outputs_are_computed_at_every_call() -> None:
    split = prepare(lowered(i("-i~i") & I), (0,))
    assert not split.first.kernels
    assert split.rest.outputs == ("out0", "in0")


@pytest.mark.parametrize("constants", [(), (0, 1)])
def test_none_or_all_constant(constants: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((4, 3)), rng.standard_normal((5, 4))]
    split = prepare(lowered(PACKED), constants)
    assert len(split.rest.kernels) == (1 if constants else 3), "the last kernel writes the output"
    np.testing.assert_array_equal(execute_in_two(split, arrays)[0], execute(lowered(PACKED), arrays)[0])
