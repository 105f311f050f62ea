"""What only a thorough search finds, at extents of no workload: each against the same product where it is easy."""

from __future__ import annotations

import pytest

from ilang_eq import optimize
from ilang_eq.extract import domains, search
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.expr import Loop
from ilang_eq.lang.wiring import wire
from ilang_eq.optimized import Optimized

PLAIN = i("ik*kj~ijk") >> i("+ijk~ij")


@pytest.fixture(autouse=True)
def zen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_zen")


def optimized(component: Component, *shapes: tuple[int, ...], threads: int = 1) -> Optimized:
    return optimize(component, shapes, threads=threads, database=False)


def test_products_of_four_axes_run_in_register_tiles() -> None:
    """Without starts at register tiles the heads' axis is tiled as all others are, at 1.6 times the cost."""
    heads = optimized(i("is*hsk~hiks") >> i("+hiks~hik"), (512, 768), (12, 768, 64))
    assert heads.cost < 1.2 * optimized(PLAIN, (512, 768), (768, 768)).cost


@pytest.mark.parametrize(
    ("component", "shapes", "plain"),
    [
        (i("abcd*cdef~abefcd") >> i("+abefcd~abef"), [(16, 40, 24, 16), (24, 16, 40, 32)], [(640, 384), (384, 1280)]),
        (i("akb*ckd~abcdk") >> i("+abcdk~abcd"), [(40, 192, 24), (20, 192, 48)], [(960, 192), (192, 960)]),
    ],
    ids=["four", "five"],
)
def test_products_with_four_axes_run_in_register_tiles(
    component: Component, shapes: list[tuple[int, ...]], plain: list[tuple[int, ...]]
) -> None:
    """Three axes at most have tile loops. The others were whole, inside what is reduced: 1.3 to 4 times the time."""
    assert optimized(component, *shapes).cost < 1.2 * optimized(PLAIN, *plain).cost


def test_tiles_go_along_the_axes_that_suit_the_copies_of_both_factors() -> None:
    """Along the others it takes 1.6 times as long."""
    found = optimized(i("sic*sjd~sicjd") >> i("+sicjd~ijcd"), (128, 64, 16), (128, 64, 16))
    assert found.cost < 1.2 * optimized(PLAIN, (1024, 128), (128, 1024)).cost
    assert found.plan().kernels > 1, "the copy of one is a kernel of its own"


def test_long_columns_of_two_factors_are_copied_in_panels() -> None:
    """One is copied whole, in the order in which its reader goes through it; row by row, it took 1.3 times as long."""
    turned = optimized(i("ki*kj~ijk") >> i("+ijk~ij"), (4096, 512), (4096, 512))
    assert turned.cost < 1.2 * optimized(PLAIN, (512, 4096), (4096, 512)).cost


def test_a_row_is_still_near_when_what_it_gave_meets_it_again() -> None:
    """Xᵀ·max(0, X·w) in one pass over the rows of X, which are shorter than a page."""
    products = i("bi*i~bi") >> i("+bi~b") >> i("0>b~b")
    found = optimized(((I & I) | I) >> (I | products) >> i("bi*b~ib") >> i("+ib~i"), (32768, 384), (384,))
    assert found.plan().kernels == 1
    assert goes_from_row_to_row(found)


def test_a_factor_whose_columns_are_rows_is_copied_whole() -> None:
    """Copied where it is read, once for each panel of the other, or not at all, it takes 1.8 times as long."""
    turned = optimized(i("ki*kj~ijk") >> i("+ijk~ij"), (1024, 1024), (1024, 1024))
    assert turned.cost < 1.2 * optimized(PLAIN, (1024, 1024), (1024, 1024)).cost
    assert turned.plan().kernels == 2, "the copy is a kernel of its own"


def test_a_product_of_an_argument_with_itself_reads_two_parts_of_it() -> None:
    """Taken for one, they seemed to fit the nearest cache: 7.5 ms where two arguments take 14.1, and it takes 11.5."""
    # differences, as of a symmetric result half would be computed
    alone = i("ki-kj~kij|i:16:6,j:3:16,k:128|ikji'j'k'i''j''") >> i("+kij~ij|i:16:6,j:3:16,k:128|ikji'j'k'i''j''0")
    one = optimized((I & I) >> alone, (4096, 256))
    two = optimized(alone, (4096, 256), (4096, 256))
    assert one.baseline_cost == pytest.approx(two.baseline_cost, rel=0.01)


@pytest.mark.parametrize(
    "component", [i(">ij~j"), i("0>ij~ij") >> i("+ij~j"), i("ij*i~ij") >> i("+ij~j")], ids=["max", "sum", "product"]
)
def test_columns_are_reduced_row_by_row(component: Component) -> None:
    shapes = [(4096, 4096), (4096,)][: component.inputs]
    for threads in (1, 2):
        assert goes_from_row_to_row(optimized(component, *shapes, threads=threads))


def test_columns_of_short_rows_are_not() -> None:
    assert not goes_from_row_to_row(optimized(i("+ij~j"), (65536, 256)))


def goes_from_row_to_row(found: Optimized) -> bool:
    """Whether the outermost loop of the reduction, which comes last, is over what it reduces."""
    reduction = wire(found.component).nodes[-1].expr
    first = reduction.sequence[0]
    assert isinstance(first, Loop)
    return first.axis not in reduction.output


def test_what_is_hardly_better_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = i("ki*kj~ijk") >> i("+ijk~ij"), (512, 512), (512, 512)
    better = optimized(*turned)
    monkeypatch.setattr(search, "NOTABLE", 100.0)
    usual = optimized(*turned)
    assert better.cost < usual.cost / 1.2
    assert better.plan().kernels > usual.plan().kernels


def test_breadths_are_not_thorough_by_themselves() -> None:
    assert not any(breadth.thorough for breadth in domains.BREADTHS)
