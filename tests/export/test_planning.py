"""Arrays in one workspace: no two that are alive together overlap, and little is wasted."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from ilang_eq.export.planning import LINE, Lifetime, padded, planned


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Lifetime]:
    spans = draw(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 12), st.integers(0, 6)), max_size=14))
    return [Lifetime(f"v{n}", floats, first, first + length) for n, (floats, first, length) in enumerate(spans)]


@given(lifetimes())
def test_what_is_alive_together_does_not_overlap(arrays: list[Lifetime]) -> None:
    layout = planned(arrays)
    for one, other in combinations(arrays, 2):
        first, second = layout.offsets[one.name], layout.offsets[other.name]
        apart = first + one.floats <= second or second + other.floats <= first
        assert apart or not one.meets(other)
    for array in arrays:
        assert layout.offsets[array.name] % LINE == 0
        assert layout.offsets[array.name] + array.floats <= layout.floats


@given(lifetimes())
def test_the_workspace_is_no_larger_than_all_arrays(arrays: list[Lifetime]) -> None:
    sizes = [padded(array.floats) for array in arrays]
    steps = range(max((array.last for array in arrays), default=0) + 1)
    alive = [sum(padded(a.floats) for a in arrays if a.first <= step <= a.last) for step in steps]
    assert max(alive, default=0) <= planned(arrays).floats <= sum(sizes)


def test_a_chain_needs_two_arrays() -> None:
    chain = [Lifetime(f"v{n}", 100, n, n + 1) for n in range(20)]
    assert planned(chain).floats == 2 * padded(100)


def test_a_small_array_fits_a_gap() -> None:
    arrays = [Lifetime("a", 160, 0, 1), Lifetime("b", 320, 0, 9), Lifetime("c", 64, 2, 9), Lifetime("d", 64, 2, 9)]
    assert planned(arrays).floats == 480
