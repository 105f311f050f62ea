from __future__ import annotations

import math
from itertools import product as pairs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ilang_eq.tracing.axes import Axes, Misaligned
from ilang_eq.tracing.extents import Extent, extent_of, solve


def sizes(axes: Axes, found: tuple[int, ...]) -> list[int]:
    return [axes.extent(axis).number for axis in axes.parts(found)]


def fresh(axes: Axes, *extents: int) -> list[int]:
    return [axes.fresh(Extent(n)) for n in extents]


def test_a_reshape_splits_an_axis_and_all_that_is_tied_to_it() -> None:
    axes = Axes()
    (whole,) = fresh(axes, 12)
    other = axes.like(whole)
    assert axes.regroup([whole], [Extent(3), Extent(4)]) == ((axes.parts([whole])[0],), (axes.parts([whole])[1],))
    assert sizes(axes, (other,)) == [3, 4]


def test_cuts_that_differ_are_refined() -> None:
    axes = Axes()
    left, right = fresh(axes, 12), fresh(axes, 2, 6)
    axes.align(left, right)
    axes.align(left, fresh(axes, 4, 3))
    assert sizes(axes, tuple(left)) == [2, 2, 3]
    assert [axes.root(a) for a in axes.parts(left)] == [axes.root(b) for b in axes.parts(right)]


@pytest.mark.parametrize(("left", "right"), [([4, 3], [3, 4]), ([4], [5]), ([4], [4, 2]), ([0], [3])])
def test_cuts_without_common_parts_are_misaligned(left: list[int], right: list[int]) -> None:
    axes = Axes()
    with pytest.raises(Misaligned):
        axes.align(fresh(axes, *left), fresh(axes, *right))


def test_regrouping_needs_all_elements() -> None:
    axes = Axes()
    for extents in ([2], [5], [12, 2], [24], [8, 3]):
        with pytest.raises(Misaligned):
            axes.regroup(fresh(axes, 4, 3), [Extent(n) for n in extents])


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_regrouping_keeps_the_order_of_elements(factors: list[int], data: st.DataObject) -> None:
    """Merging consecutive factors and cutting them again gives the axes that were there."""
    cuts = sorted(data.draw(st.sets(st.integers(1, len(factors)))) | {len(factors)})
    merged = [math.prod(factors[a:b]) for a, b in zip([0, *cuts], cuts, strict=False)]
    axes = Axes()
    flat = [axes.fresh(Extent(n)) for n in merged if n > 1]
    dims = axes.regroup(flat, [Extent(n) for n in factors])
    assert [math.prod(sizes(axes, dim)) for dim in dims] == factors
    assert axes.parts([axis for dim in dims for axis in dim]) == axes.parts(flat)


def test_extents_read_and_print() -> None:
    for text in ("s0", "4*s0", "s0*s1", "12", "2*s0*s0"):
        assert str(extent_of(text)) == text
    assert extent_of("s0*3*2*a") == Extent(6, ("a", "s0"))
    assert extent_of("s0 + 1").symbols == ("(s0 + 1)",)
    assert extent_of(7) == Extent(7)


def test_dividing_extents() -> None:
    assert extent_of("12*s0").over(extent_of("4*s0")) == Extent(3)
    assert extent_of("12*s0").over(extent_of("s1")) is None
    assert extent_of("12").over(extent_of("5")) is None
    assert extent_of("0").over(extent_of("0")) is None


@given(st.dictionaries(st.sampled_from("abc"), st.integers(1, 9), min_size=3))
def test_symbols_are_solved_from_what_determines_them(values: dict[str, int]) -> None:
    extents = [extent_of(text) for text in ("3*a", "a*b", "b*c*2", "a*c")]
    for order in (extents, extents[::-1]):
        assert solve((e, e.value(values)) for e in order) == values
    assert solve([(extent_of("a*b"), 6), (extent_of("a*a"), 4)]) == {}
    for a, b in pairs((1, 2), repeat=2):
        assert extent_of("a*b").value({"a": a, "b": b}) == a * b
