"""Copies are laid out by tiles where all readers agree, and compute what they did."""

from __future__ import annotations

import numpy as np
import pytest

from ilang_eq import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.check import check
from ilang_eq.lower.ir import CeilDiv, Extent, Program
from ilang_eq.lower.preparation import prepare
from tests.lower.execute import execute

K, J = Extent(0, 1), Extent(1, 1)


def product(copy: str, splits: str = "i:2,j:4", order: str = "jiki'j'") -> Component:
    """A product whose second input is copied by a kernel of its own."""
    return (I | i(copy)) >> i(f"ik*kj~kij|{splits}|{order}") >> i(f"+kij~ij|{splits}|{order}0")


def copied(component: Component) -> Program:
    program = lower(wire(component))
    check(program)
    return program


def dims(program: Program) -> tuple[object, ...]:
    return next(b.dims for b in program.buffers if b.role == "workspace")


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        (product("+kj~kj|j:4|jkj'"), (CeilDiv(J, 4), K, 4)),
        (product("+kj~kj|j:4,k:3|jkk'j'"), (CeilDiv(J, 4), K, 4)),
        (product("+kj~kj|j:2:4|jj'kj''"), (CeilDiv(J, 4), K, 4)),
        (product("+kj~kj|j:4|jkj'", "i:2,j:3:4", "jij'ki'j''"), (CeilDiv(J, 4), K, 4)),
        (product("+kj~kj|j:8|jkj'", "i:2,j:2:4", "jij'ki'j''"), (CeilDiv(J, 8), K, 8)),
        (product("+kj~kj|j:2:4|jkj'j''", "i:2,j:2:4", "jij'ki'j''"), (CeilDiv(J, 8), K, 8)),
        (product("+kj~kj|j:8|jkj'"), (K, J)),
        (product("+kj~kj"), (K, J)),
        (product("+kj~kj|k:4|kk'j"), (K, J)),
        (product("+kj~kj|j:3|jkj'"), (K, J)),
        (product("+kj~kj|j:4|jkj'", "i:2", "jiki'"), (K, J)),
        (product("+kj~kj|j:4|jkj'", "i:2,j:8", "jiki'j'"), (K, J)),
    ],
)
def test_tiles_that_readers_keep_to_are_contiguous(component: Component, expected: tuple[object, ...]) -> None:
    assert dims(copied(component)) == expected


@pytest.mark.parametrize("extents", [(5, 3, 9), (2, 7, 4), (1, 1, 1), (4, 6, 16)])
@pytest.mark.parametrize("copy", ["+kj~kj|j:4|jkj'", "+jk~kj|j:4|jkj'", "+kj~kj|j:2:4|jj'kj''"])
def test_panels_compute_the_same(copy: str, extents: tuple[int, int, int]) -> None:
    rows, depth, columns = extents
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((rows, depth)), rng.standard_normal((depth, columns))
    given = b.T.copy() if copy.startswith("+jk") else b
    program = copied(product(copy))
    np.testing.assert_allclose(execute(program, [a, given])[0], a @ b, atol=1e-12)
    split = prepare(program, [1])
    check(split.first)
    check(split.rest)
    (kept,) = execute(split.first, [given])
    assert split.fixed == (1,), "nothing else tells how many columns there are"
    np.testing.assert_allclose(execute(split.rest, [a, given, kept])[0], a @ b, atol=1e-12)


def test_what_is_computed_in_tiles_is_laid_out_like_a_copy() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 3)), rng.standard_normal((3, 9))
    program = copied(product("2*kj~kj|j:4|jkj'"))
    assert dims(program) == (CeilDiv(J, 4), K, 4)
    np.testing.assert_allclose(execute(program, [a, b])[0], a @ (2 * b), atol=1e-12)


def test_a_copy_of_which_one_reader_has_other_tiles_stays_row_major() -> None:
    shared = (I | i("+kj~kj|j:4|jkj'") >> (I & i("+kj~k"))) >> (
        i("ik*kj~kij|i:2,j:4|jiki'j'") >> i("+kij~ij|i:2,j:4|jiki'j'0") | I
    )
    assert dims(copied(shared)) == (K, J)
