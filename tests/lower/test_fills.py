"""Fills move to the first block of what is accumulated there, and only if that comes to the same elements."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.check import InvalidProgram, check
from ilang_eq.lower.fills import in_first_blocks
from ilang_eq.lower.ir import Accumulate, Assign, Constant, Extent, For, Kernel, Load, Program
from ilang_eq.lower.walk import updates, walk
from tests.lower.execute import execute


def product(splits: str, order: str) -> Component:
    return i(f"ik*kj~kij|{splits}|{order}") >> i(f"+kij~ij|{splits}|{order}0")


OUTERMOST = product("i:3,j:4,k:8", "kjik'i'j'")
BLOCKED = {
    "outermost": OUTERMOST,
    "inside columns": product("i:3,j:4,k:8", "jkik'i'j'"),
    "two levels": product("i:3,j:4,k:4:2", "kjk'ik''i'j'"),
    "two levels at once": product("i:3,j:4,k:4:2", "kk'jik''i'j'"),
    "blocks of tiles": product("i:2:3,j:2:4,k:4:2", "kjik'j'i'k''i''j''"),
    "lanes are summed": product("i:3,k:8:4", "kijk'i'k''"),
    "packed": (I | i("+kj~kj|j:4,k:8|kjk'j'"))
    >> i("ik*kj~kij|i:3,j:4,k:8|kj1ik'i'j'")
    >> i("+kij~ij|i:3,j:4,k:8|kjik'i'j'0"),
    "a maximum": i(">kij~ij|i:3,j:4,k:8|kjik'i'j'"),
    "used afterwards": OUTERMOST >> i("0>ij~ij"),
    "staged": product("i:6:3,j:4,k:8", "ikji'k'i''j'") >> i("0>ij~ij|i:6:3|i1i'i''j"),
}
OTHERS = {
    "whole reductions": product("i:3,j:4", "jiki'j'"),
    "blocks of a tile": product("i:3,j:4,k:8", "jikk'i'j'"),
    "no tiles": product("k:8", "kijk'"),
    "rows of any length": product("i:3,k:8", "kik'i'j"),
    "repaired on the way": (I & i(">ij~i|j:4|jij'"))
    >> i("ij-i~ij|j:4|j1ij'")
    >> i("^ij~ij|j:4|j0ij'")
    >> i("+ij~i|j:4|j0ij'"),
}
SHAPES = [(6, 16, 8), (7, 17, 9), (2, 3, 1), (6, 0, 8), (0, 4, 4)]


def moved(program: Program) -> Program:
    after = replace(program, kernels=tuple(map(in_first_blocks, program.kernels)))
    check(after)
    return after


def arrays(component: Component, shape: tuple[int, int, int]) -> list[np.ndarray]:
    rows, depth, columns = shape
    random = np.random.default_rng(0)
    sizes = [(rows, depth), (depth, columns)] if component.inputs == 2 else [(depth, rows, columns)]
    return [random.standard_normal(size).astype(np.float32) for size in sizes]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("component", BLOCKED.values(), ids=BLOCKED)
def test_the_first_block_fills(component: Component, shape: tuple[int, int, int]) -> None:
    """With tails of every axis, and where there is nothing to sum up."""
    before = lower(wire(component))
    after = moved(before)
    loops = [s for kernel in after.kernels for s in walk(kernel.body) if isinstance(s, For)]
    fills = [loop for loop in loops if any(isinstance(u, Assign) for u in updates([loop])) and not loop.reduces]
    assert sum(bool(loop.first) for loop in loops) == 1
    assert sum(bool(loop.without) for loop in loops) == 1
    assert all(loop.limit is not None for loop in fills if loop.first)
    values = arrays(component, shape)
    for mine, theirs in zip(execute(after, values), execute(before, values), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("component", OTHERS.values(), ids=OTHERS)
def test_others_stay(component: Component) -> None:
    before = lower(wire(component))
    assert moved(before) == before


def test_a_target_that_is_touched_besides_stays() -> None:
    (kernel,) = lower(wire(OUTERMOST)).kernels
    *opening, blocks = kernel.body
    assert isinstance(blocks, For)
    again = Accumulate(Load("out0", ()), "mul", Constant(2.0))
    besides = Kernel(kernel.name, (*opening, replace(blocks, body=(*blocks.body, again))))
    assert in_first_blocks(besides) == besides


def test_a_fill_of_more_than_is_accumulated_stays() -> None:
    """Columns that no block comes to need their zeros."""
    (kernel,) = lower(wire(OUTERMOST)).kernels
    fill = next(s for s in kernel.body if isinstance(s, For))
    (inner,) = (s for s in fill.body if isinstance(s, For))
    wider = replace(fill, body=(replace(inner, extent=Extent(0, 1)),))
    other = Kernel(kernel.name, tuple(wider if s is fill else s for s in kernel.body))
    assert in_first_blocks(other) == other


def test_the_checker_knows_the_loops_around() -> None:
    program = moved(lower(wire(OUTERMOST)))
    (kernel,) = program.kernels
    fill = next(s for s in kernel.body if isinstance(s, For))
    lost = replace(kernel, body=(replace(fill, first=("k",)),))
    with pytest.raises(InvalidProgram, match="first iteration"):
        check(replace(program, kernels=(lost,)))


FIRST = r"if \(k (== 0|> 0)\)"
"""What is done in first blocks alone, or in others."""


@pytest.mark.parametrize("shape", [(6, 16, 8), (7, 17, 9), (12, 600, 70), (6, 0, 8)], ids=str)
@pytest.mark.parametrize("tile", ["i:3,j:16,k:8", "i:2,j:14,k:8"])
@pytest.mark.parametrize("order", ["kjik'i'j'", "jkik'i'j'"])
def test_kernels_return_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int], tile: str, order: str
) -> None:
    component = product(tile, order)
    values = arrays(component, shape)
    program = lower(wire(component))
    kernel = CKernel(program, 1)
    assert re.search(FIRST, kernel.source)
    got = kernel(*values, out=np.full((shape[0], shape[2]), np.nan, np.float32))
    monkeypatch.setattr("ilang_eq.c.kernels.in_first_blocks", lambda kernel: kernel)
    filled = CKernel(program, 1)
    assert not re.search(FIRST, filled.source)
    np.testing.assert_array_equal(got.view(np.int32), filled(*values).view(np.int32))
