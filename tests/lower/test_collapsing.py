from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.check import check
from ilang_eq.lower.collapsing import collapsed
from ilang_eq.lower.interface import output_shapes
from ilang_eq.lower.ir import Extent, Program
from ilang_eq.lower.walk import extents_of

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
SCALED = i("ijk*2~ijk") >> i("^ijk~ijk||ijk0")
BIASED = i("ijk+k~ijk")
DOTS = i("ij*ij~ij") >> i("+ij~.||ij0")
SUMS = i("+ijk~k")
STORED = i("ij*2~ij") >> (I & i("-ij~ij")) >> i("ij*ij~ij")


def loops(component: Component) -> list[tuple[Extent, ...]]:
    """What the loops of each kernel go over, after collapsing."""
    program = collapsed(lower(wire(component)))
    check(program)
    return [tuple(dict.fromkeys(extents_of(kernel.body))) for kernel in program.kernels]


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        (SCALED, [(Extent(0, 0, 2),)]),
        (BIASED, [(Extent(0, 0, 1), Extent(0, 2))]),
        (DOTS, [(Extent(0, 0, 1),)]),
        (SUMS, [(Extent(0, 2), Extent(0, 0, 1))]),
        (STORED, [(Extent(0, 0, 1),)] * 3),
    ],
    ids=str,
)
def test_neighbours_are_one(component: Component, expected: list[tuple[Extent, ...]]) -> None:
    assert loops(component) == expected


@pytest.mark.parametrize(
    "component",
    [
        i("+ij~i"),
        i("ij*2~ji"),
        i("ij+i~ij"),
        i("ij+ji~ij"),
        i("ij*2~ij|j:8|"),
        i("ij*2~ij||ji"),
        i("ij*ij~ij") >> i("+ij~i"),
        (I & i("+ij~i")) >> i("ij-i~ij||i1j"),
    ],
    ids=str,
)
def test_what_has_one_alone_or_otherwise_stays(component: Component) -> None:
    program = lower(wire(component))
    assert collapsed(program) is program


def test_shapes_are_those_of_before() -> None:
    program = collapsed(lower(wire(SCALED)))
    assert program.buffer("out0").dims == (Extent(0, 0, 2),)
    whole = lower(wire(SCALED))
    assert output_shapes(whole, ((2, 3, 4),)) == ((2, 3, 4),)
    assert Extent(0, 0, 2).at({(0, 0): 2, (0, 1): 3, (0, 2): 4}) == 24
    assert str(Extent(0, 0, 2)) == "in0.0·1·2"


@needs_compiler
@pytest.mark.parametrize("component", [SCALED, BIASED, DOTS, SUMS, STORED], ids=str)
@pytest.mark.parametrize("shape", [(7, 5, 3), (1, 1, 1), (300, 70, 3), (3, 0, 2)], ids=str)
def test_kernels_compute_the_same(component: Component, shape: tuple[int, ...]) -> None:
    program: Program = lower(wire(component))
    rng = np.random.default_rng(0)
    ranks = [rank or 0 for rank in program.ranks]
    arrays = [rng.standard_normal(shape[3 - rank :], dtype=np.float32) for rank in ranks]
    got = CKernel(program)(*arrays)
    want = component.interpret(*(array.astype(np.float64) for array in arrays))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-3)


@needs_compiler
@pytest.mark.parametrize("axes", ["if", "do", "for", "int"])
def test_axes_that_spell_a_word_of_c(axes: str) -> None:
    x = np.random.default_rng(0).standard_normal((7, 5, 3)[: len(axes)], dtype=np.float32)
    np.testing.assert_array_equal(CKernel(lower(wire(i(f"{axes}*2~{axes}"))))(x), 2 * x)
