"""Rows that become columns, block by block."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq import Component, I, i
from ilang_eq.c.binding import bind
from ilang_eq.c.emit import emit
from ilang_eq.c.nodes import Loop, Node, Parallel, Turned, Versions
from ilang_eq.c.turned import LANES, STRIP
from ilang_eq.extract import tally, trips
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from tests.extract.costs import seconds

COPY = i("+jk~kj|j:16,k:32|jkk'j'")
"""Panels of 16 columns, in blocks of 32 rows."""


def turned(component: Component) -> list[Turned]:
    """Of all kernels, in order."""
    return [found for kernel in lower(wire(component)).kernels for node in bind(kernel) for found in _turned(node)]


def _turned(node: Node) -> list[Turned]:
    match node:
        case Turned():
            return [node]
        case Loop(body=body) | Parallel(body=body):
            return [found for inner in body for found in _turned(inner)]
        case Versions(full=full, tail=tail):
            return [found for inner in (*full, *tail) for found in _turned(inner)]
        case _:
            return []


@pytest.mark.parametrize(
    ("component", "height", "width", "whole"),
    [
        (COPY, STRIP, STRIP, True),
        (i("+jk~kj|j:8,k:32|jkk'j'"), STRIP, LANES, True),
        (i("+jk~kj|j:24,k:32|jkk'j'"), STRIP, LANES, True),
        (i("+jk~kj|j:16,k:24|jkk'j'"), LANES, STRIP, True),
        # fewer are left than of blocks of as many rows as columns
        (i("+jk~kj|j:16,k:12|jkk'j'"), LANES, STRIP, False),
        (i("+jk~kj|j:16,k:20|jkk'j'"), STRIP, STRIP, False),
        # rows of run-time length, though they could be tasks
        (i("+jk~kj|j:16|jkj'"), STRIP, STRIP, False),
        # the loop that vectors go along may be the outer one
        (i("+kj~jk|j:16,k:32|jkj'k'"), STRIP, STRIP, True),
        # beside what is read along the columns
        ((I & I) >> i("ij+ji~ij|i:16,j:16|iji'j'"), STRIP, STRIP, True),
    ],
)
def test_blocks(component: Component, height: int, width: int, whole: bool) -> None:
    (found,) = turned(component)
    assert (found.height, found.width, found.whole) == (height, width, whole)


@pytest.mark.parametrize(
    "component",
    [
        # what compilers have vectors for
        i("+kj~kj|j:16,k:32|jkk'j'"),
        # columns that are no whole vectors, or not known to be any number
        i("+jk~kj|j:12,k:32|jkk'j'"),
        i("+jk~kj"),
        # functions have loops of their own, and sums
        i("^jk~kj|j:16,k:32|jkk'j'"),
        i("+jkl~kj|j:16,k:32|jklk'j'"),
        # from place to place along both
        i("+jkl~klj|j:16,k:32|ljkk'j'"),
        # between two other loops
        i("+jk~kj|j:16|kjj'"),
    ],
)
def test_others_stay_as_they_are(component: Component) -> None:
    assert not turned(component)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (16, 32), (47, 33), (64, 100), (33, 300)])
@pytest.mark.parametrize(
    "component",
    [
        COPY,
        i("+jk~kj|j:24,k:24|jkk'j'"),
        i("+jk~kj|j:16,k:12|jkk'j'"),
        i("+jk~kj|j:16|jkj'"),
        i("+kj~jk|j:16,k:32|jkj'k'"),
        i("2*jk~kj|j:8,k:16|jkk'j'"),
    ],
    ids=str,
)
def test_copies(component: Component, shape: tuple[int, int]) -> None:
    guarded = np.full(shape[0] * shape[1] + 64, 7.0, np.float32)
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    out = guarded[: x.size].reshape(shape[::-1])
    for threads in (1, 2):
        out[:] = np.nan
        component.compile(threads=threads)(x, out=out)
        np.testing.assert_array_equal(out, np.asarray(component.interpret(x), np.float32))
        assert (guarded[x.size :] == 7.0).all()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("n", [1, 16, 45, 96])
def test_beside_other_operands(n: int) -> None:
    component = (I & I) >> (i("ij-ji~ij|i:16,j:16|iji'j'") | I) >> i("ij*i~ij|i:16,j:16|ij0i'j'")
    rng = np.random.default_rng(n)
    x, w = rng.standard_normal((n, n), dtype=np.float32), rng.standard_normal(n, dtype=np.float32)
    np.testing.assert_allclose(component.compile(threads=2)(x, w), (x - x.T) * w[:, None], rtol=1e-6)


def test_what_is_read_in_turn_is_read_once() -> None:
    """Two places of one matrix, both along rows, are two blocks."""
    component = (I & I) >> i("ji*ji~ij|i:16,j:16|jij'i'")
    source = emit(lower(wire(component)))
    assert "columns_0" in source
    assert "columns_1" not in source


def test_the_model_knows() -> None:
    assert tally.TURNED_SLOTS < tally.GATHER_SLOTS
    assert trips.COLUMNS == LANES
    shape = (1024, 1024)
    known = {text: seconds(i(text), shape) for text in ("+jk~kj|j:64|jkj'", "+jk~kj|j:60|jkj'")}
    in_blocks, one_by_one = known.values()
    assert in_blocks < 0.5 * one_by_one
    # lines are read as a whole, though they lie in the same places of a cache
    skewed = seconds(i("+jk~kj|j:64|jkj'"), (1024, 1008))
    assert in_blocks == pytest.approx(skewed * 1024 / 1008, rel=0.1)
    # longer rows would take less, but what is left after whole blocks goes element by element
    longer = [seconds(i(f"+jk~kj|j:64,k:{rows}|jkk'j'"), (1008, 1024)) for rows in (24, 28, 30)]
    assert longer == sorted(longer)
