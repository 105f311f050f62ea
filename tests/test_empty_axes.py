"""Axes without elements: sums of nothing are 0, however the kernel was rewritten, and its reductions corrected."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ilang_eq import Component, I, i, optimize
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.wiring import wire

SCORES = i("ik*jk~ijk") >> i("+ijk~ij")
EXPONENTIALS = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij")
SOFTMAX = EXPONENTIALS >> (I & i("+ij~i")) >> i("ij/i~ij")
ATTENTION = SCORES >> SOFTMAX >> i("ij*jk~ikj") >> i("+ikj~ik")
ONLINE = {
    "maximum": (I & i(">ij~i||ji")) >> i("ij-i~ij||j1i") >> i("^ij~ij||j0i") >> i("+ij~i||j0i"),
    "divisor": (I & i("+ij~i||ji")) >> i("ij/i~ij||j1i") >> i("ij*j~ij||j0i") >> i("+ij~i||j0i"),
}

COMPONENTS: dict[str, Component] = {
    "sum of a softmax": SOFTMAX >> i("+ij~i"),
    "softmax": SOFTMAX,
    "attention": ATTENTION,
    "sum of quotients": (I & i("+ij~i")) >> i("ij/i~ij") >> i("+ij~i"),
    "sum of products": (I & i("+ij~i") >> i("/i~i")) >> i("ij*i~ij") >> i("+ij~i"),
    "mean": (i("+ij~i") & i("1>=ij~ij") >> i("+ij~i")) >> i("i/i~i"),
    "sum of exponentials": EXPONENTIALS >> i("+ij~i"),
    "largest": i("ij-i~ij") >> i(">ij~i"),
}


def empties(component: Component, sizes: list[int]) -> list[list[np.ndarray]]:
    """Arrays for ``component``, for every choice of axes that have no elements."""
    shapes = infer(wire(component))
    places = [(k, d) for k, rank in enumerate(shapes.ranks) for d in range(rank or 0)]
    names = list(dict.fromkeys(shapes.input_extent(*place) for place in places))
    found: list[list[np.ndarray]] = []
    for chosen in range(1, 2 ** len(names)):
        extents = {name: 0 if chosen >> n & 1 else sizes[n] for n, name in enumerate(names)}
        found.append(
            [
                np.ones([extents[shapes.input_extent(k, d)] for d in range(rank or 0)], np.float32)
                for k, rank in enumerate(shapes.ranks)
            ]
        )
    return found


def agree(kernel: object, component: Component) -> None:
    assert callable(kernel)
    for arrays in empties(component, [3, 5, 2, 4]):
        np.testing.assert_array_equal(kernel(*arrays), component.interpret(*arrays))


@pytest.mark.parametrize("component", COMPONENTS.values(), ids=COMPONENTS)
def test_what_was_found_for_other_axes_serves_empty_ones(component: Component) -> None:
    best = optimize(component, [(64,) * (rank or 0) for rank in infer(wire(component)).ranks], threads=1)
    agree(best, component)
    agree(best.component.compile(threads=1), best.component)


@pytest.mark.parametrize("component", COMPONENTS.values(), ids=COMPONENTS)
def test_prepared_kernels(component: Component) -> None:
    best = optimize(component, [(64,) * (rank or 0) for rank in infer(wire(component)).ranks], threads=1)
    kernels = ((best, component), (best.component.compile(), best.component))
    for (kernel, meaning), chosen in itertools.product(kernels, range(2**component.inputs)):
        for arrays in empties(component, [3, 5, 2, 4]):
            constants = {f"in{k}": array for k, array in enumerate(arrays) if chosen >> k & 1}
            others = [array for k, array in enumerate(arrays) if not chosen >> k & 1]
            np.testing.assert_array_equal(kernel.prepare(**constants)(*others), meaning.interpret(*arrays))


def test_constants_are_kept_only_where_nothing_may_be_summed() -> None:
    q, k = np.ones((3, 4), np.float32), np.ones((5, 4), np.float32)
    scores = SCORES.compile()
    assert not scores.prepare(in1=k).constants
    assert list((SCORES >> i("+ij~i")).compile().prepare(in0=q).constants) == [0]


@pytest.mark.parametrize("component", COMPONENTS.values(), ids=COMPONENTS)
def test_a_search_for_empty_axes(component: Component) -> None:
    agree(optimize(component, [(0,) * (rank or 0) for rank in infer(wire(component)).ranks], threads=1), component)


@pytest.mark.parametrize("component", ONLINE.values(), ids=ONLINE)
def test_online_corrections_of_nothing(component: Component) -> None:
    assert component.plan().corrections
    agree(component.compile(threads=1), component)


def test_an_empty_call_between_others_changes_none() -> None:
    best = optimize(COMPONENTS["sum of a softmax"], threads=1)
    for rows in ((2, 4), (2, 0), (2, 4), (0, 4), (2, 0)):
        out = np.full(rows[0], np.nan, np.float32)
        assert best(np.ones(rows, np.float32), out=out) is out
        np.testing.assert_allclose(out, np.full(rows[0], min(rows[1], 1.0)), rtol=1e-6)
