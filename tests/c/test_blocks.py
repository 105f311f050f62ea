"""Long sums in register tiles go in blocks: no error grows with their length, and nothing else changes."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from ilang_eq.c.emit import emit
from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.component import Component, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Assign, Constant, For, Statement
from ilang_eq.lower.widths import BLOCK
from tests.c import programs

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def product(schedule: str, op: str = "+") -> Component:
    """Inputs (i, k) and (k, j)."""
    return i(f"ik*kj~ikj|{schedule}") >> i(f"{op}ikj~ij|{schedule}0")


WHOLE = "i:6,j:16|ijki'j'"
IN_BLOCKS = "i:6,j:16,k:256|ijki'k'j'"
BLOCKS_OUTSIDE = "i:6,j:16,k:256|kijk'i'j'"
ACROSS = "i:16,j:6|ijkj'i'"


@needs_compiler
@pytest.mark.parametrize("schedule", [WHOLE, BLOCKS_OUTSIDE])
def test_errors_do_not_grow_with_the_length(schedule: str) -> None:
    """Of sums of positive numbers, whose partial sums grow all along: 3e-5 if it is one sum."""
    rng = np.random.default_rng(0)
    x, w = (rng.uniform(size=shape).astype(np.float32) for shape in ((12, 1 << 18), (1 << 18, 32)))
    exact = x.astype(float) @ w.astype(float)
    np.testing.assert_allclose(product(schedule).compile(threads=1)(x, w), exact, rtol=3e-6)


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("length", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 3])
@pytest.mark.parametrize("schedule", [WHOLE, IN_BLOCKS, BLOCKS_OUTSIDE, ACROSS])
def test_blocks_of_every_length(schedule: str, length: int, threads: int) -> None:
    """And what does not fill a tile, in memory that holds something else before, and beyond."""
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in ((13, length), (length, 37)))
    memory = np.full(13 * 37 + 64, np.nan, np.float32)
    out = memory[: 13 * 37].reshape(13, 37)
    product(schedule).compile(threads=threads)(x, w, out=out)
    np.testing.assert_allclose(out, x.astype(float) @ w.astype(float), rtol=1e-4, atol=1e-4)
    assert np.isnan(memory[13 * 37 :]).all()


@needs_compiler
@pytest.mark.parametrize("schedule", [WHOLE, BLOCKS_OUTSIDE])
@pytest.mark.parametrize("op", [">", "<", "*"])
def test_other_reductions(op: str, schedule: str) -> None:
    """Extrema, of which some are infinite, and which skip what is no number; products near 1."""
    rng = np.random.default_rng(2)
    x, w = (rng.uniform(0.99, 1.01, size=shape).astype(np.float32) for shape in ((13, 2500), (2500, 37)))
    if op != "*":
        x[:, :7], x[2, :], x[3, 100] = -np.inf, np.nan, np.inf
    component = product(schedule, op)
    np.testing.assert_allclose(component.compile(threads=1)(x, w), component.interpret(x, w), rtol=1e-4)


@needs_compiler
def test_infinities_stay() -> None:
    """One in a block and its opposite in another leave no number, and alone they are the sum."""
    x, w = np.zeros((6, 3 * BLOCK), np.float32), np.ones((3 * BLOCK, 16), np.float32)
    x[0, 5], x[1, 5], x[1, 2 * BLOCK] = np.inf, np.inf, -np.inf
    found = product(WHOLE).compile(threads=1)(x, w)
    assert (found[0] == np.inf).all()
    assert np.isnan(found[1]).all()
    assert not found[2:].any()


def begun_with(value: float, statement: Statement) -> Statement:
    """``statement`` with another number where it sets all to one."""
    match statement:
        case For(body=body):
            return replace(statement, body=tuple(begun_with(value, inner) for inner in body))
        case Assign(target, Constant()):
            return Assign(target, Constant(value))
        case _:
            return statement


@needs_compiler
@pytest.mark.parametrize("value", [0.0, 5.0])
@pytest.mark.parametrize("block", [None, 8, 300])
@pytest.mark.parametrize("length", [7, 8, BLOCK, 2 * BLOCK + 1])
def test_sums_that_begin_with_any_number(value: float, block: int | None, length: int) -> None:
    """Set right before, or to all of the output before the blocks."""
    program = programs.matmul(6, 16, block)
    (kernel,) = program.kernels
    kernel = replace(kernel, body=tuple(begun_with(value, statement) for statement in kernel.body))
    x, w = (np.random.default_rng(3).uniform(size=shape).astype(np.float32) for shape in ((13, length), (length, 37)))
    found = CKernel(replace(program, kernels=(kernel,)), 1)(x, w)
    np.testing.assert_allclose(found, value + x.astype(float) @ w.astype(float), rtol=1e-5)


def test_what_is_added_to_is_asked_for() -> None:
    """A row of the tile at a time; tiles across their target are left whole, and known lengths need no blocks."""
    text = emit(lower(wire(product(WHOLE))))
    assert f"k_to = least(k + {BLOCK}, in0_1)" in text
    assert "make_room(out0, (i + i1) * in1_1 + j, 16);" in text
    assert "_to = " not in emit(lower(wire(product(ACROSS))))
    assert "_to = " not in emit(lower(wire(product(IN_BLOCKS))))


def test_what_stays_in_a_core_is_summed_in_one_go() -> None:
    """Its maxima are what goes to memory."""
    scores = i("ik*jk~ijk|i:6,j:16|ijki'j'") >> i("+ijk~ij|i:6,j:16|ijki'j'0")
    text = emit(lower(wire(scores >> i(">ij~i|i:6,j:16|ij0i'j'"))))
    assert "add1_tile" in text
    assert not re.search("_to = |_from >", text)
