"""Inputs that stay the same: what the search does with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ilang_eq import I, i, optimize
from ilang_eq.errors import OptionError
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import CeilDiv
from ilang_eq.lower.preparation import recurring
from ilang_eq.optimized import Optimized

LINEAR = i("ik*jk~ijk") >> i("+ijk~ij")
"""x·wᵀ."""

SHAPES = [(128, 768), (1024, 768)]


@pytest.fixture(scope="module")
def linear() -> Optimized:
    return optimize(LINEAR, SHAPES, threads=1, constants=("in1",), database=False)


def test_a_constant_is_packed_in_panels_by_a_kernel_of_its_own(linear: Optimized) -> None:
    program = lower(wire(linear.component))
    (packed,) = [buffer for buffer in program.buffers if buffer.role == "workspace"]
    assert any(isinstance(size, CeilDiv) for size in packed.dims)
    assert len(program.kernels) == 2
    assert len(recurring(program, [1]).kernels) == 1


def test_what_is_computed_ahead_costs_nothing(linear: Optimized) -> None:
    every_call = optimize(LINEAR, SHAPES, threads=1, database=False)
    assert linear.cost < every_call.cost
    assert linear.best.cost.kernels == 1
    assert "in1" in linear.explain()


def test_prepared_and_unprepared_calls_agree(linear: Optimized) -> None:
    rng = np.random.default_rng(0)
    for rows, depth, columns in [(128, 96, 100), (3, 5, 7), (1, 1, 1)]:
        x, w = (rng.standard_normal(s, dtype=np.float32) for s in ((rows, depth), (columns, depth)))
        prepared = linear.prepare(in1=w)
        np.testing.assert_array_equal(prepared(x), linear(x, w))
        np.testing.assert_allclose(prepared(x), x @ w.T, rtol=1e-4, atol=1e-4)
        out = np.empty((rows, columns), np.float32)
        np.testing.assert_array_equal(prepared(x, out=out), out)


def test_a_product_of_constants_is_computed_ahead() -> None:
    """x·(a·b): three small products together, of which only one depends on x."""
    chain = i("kl*lj~klj") >> i("+klj~kj")
    component = (I | chain) >> i("ik*kj~ikj") >> i("+ikj~ij")
    best = optimize(component, [(64, 256), (256, 256), (256, 256)], threads=1, constants=("in1", "in2"), database=False)
    assert len(recurring(lower(wire(best.component)), best.constants).kernels) == 1
    rng = np.random.default_rng(0)
    x, a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((5, 7), (7, 6), (6, 9)))
    np.testing.assert_allclose(best.prepare(in1=a, in2=b)(x), x @ (a @ b), rtol=1e-4, atol=1e-4)


def test_an_unknown_input_is_refused() -> None:
    with pytest.raises(OptionError, match="'w'"):
        optimize(LINEAR, SHAPES, constants=("w",), database=False)


def test_constants_make_another_row_of_the_database(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    shapes = [(8, 16), (24, 16)]
    first = optimize(LINEAR, shapes, threads=1, constants=("in1",), database=path)
    plain = optimize(LINEAR, shapes, threads=1, database=path)
    again = optimize(LINEAR, shapes, threads=1, constants=("in1",), database=path)
    assert plain.report.origin == "search"
    assert "database" in again.report.origin
    assert (str(again), again.constants, again.cost) == (str(first), (1,), first.cost)
