"""What passes over rows ask for: each operand once, in shares, while others compute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import For
from ilang_eq.lower.passes import SHARES, Passes, passes, shares

SOFTMAX = (I & i(">ij~i|j:64|")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> (I & i("+ij~i||i0j")) >> i("ij/i~ij||i10j")
TILED = (
    (I & i(">ij~i|i:4,j:64|iji'j'"))
    >> i("ij-i~ij|i:4|i1i'j")
    >> i("^ij~ij|i:4|ii'j0")
    >> (I & i("+ij~i|i:4|i0i'j"))
    >> i("ij/i~ij|i:4|i10i'j")
)
SUM_OF_EXPONENTIALS = (I & i(">ij~i")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> i("+ij~i||ij0")
SUM_OF_SQUARES = (I & i("+ij~i")) >> i("ij-i~ij||i1j") >> (I & I) >> i("ij*ij~ij||ij01") >> i("+ij~i||ij0")
PRODUCT = i("ik*kj~kij|i:4,j:16|jiki'j'") >> i("+kij~ij|i:4,j:16|jiki'j'0")


def found(component: Component) -> Passes | None:
    program = lower(wire(component))
    (kernel,) = program.kernels
    (row,) = (s for s in kernel.body if isinstance(s, For))
    return passes(row, {buffer.name: buffer for buffer in program.buffers})


@pytest.mark.parametrize("component", [SOFTMAX, TILED])
def test_each_pass_asks_for_what_it_has_time_for(component: Component) -> None:
    """The exponentials read and write, as the quotients do; the maximum and the sum only read."""
    asked = found(component)
    assert asked is not None
    requests = [{r.place.buffer: (r.first, r.count) for r in each} for each in asked.requests]
    assert requests == [
        {"out0": (0, 1)},
        {"in0": (0, 2), "out0": (1, 2)},
        {"in0": (2, 1), "out0": (3, 1)},
        {"in0": (3, 1)},
    ]
    assert {r.place.buffer: (r.next, r.written) for r in asked.asked} == {"in0": (True, False), "out0": (False, True)}


def test_one_pass_beside_the_first_asks_for_all() -> None:
    asked = found(SUM_OF_EXPONENTIALS)
    assert asked is not None
    assert [[(r.first, r.count) for r in each] for each in asked.requests] == [[], [(0, SHARES)]]


def test_passes_none_of_which_takes_its_time_all_ask() -> None:
    """Rows less their mean are written, so that memory is needed for more than reading."""
    asked = found((I & i("+ij~i") >> i("i/64~i||i0")) >> i("ij-i~ij||ij1") >> i("ij*3~ij||ij0"))
    assert asked is not None
    read = [[(r.first, r.count) for r in each if not r.written] for each in asked.requests]
    assert read == [[(0, 1)], [(1, 3)]]


def test_what_comes_while_functions_are_computed_is_not_asked_for_before() -> None:
    """Exponentials are written by the last pass of blocks, where the one before only sums; row by row both ask."""
    blocks = (I & i("+ij~i|i:4|ii'j") >> i("i/64~i|i:4|ii'0")) >> i("ij-i~ij|i:4|i1i'j") >> i("^ij~ij|i:4|ii'j0")
    rows = (I & i("+ij~i") >> i("i/64~i||i0")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0")
    for component, written in ((blocks, []), (rows, ["out0"])):
        asked = found(component)
        assert asked is not None
        assert [request.place.buffer for each in asked.requests for request in each if request.written] == written
        assert "in0" in {request.place.buffer for request in asked.asked}


def test_what_has_to_be_in_reach_is_a_row() -> None:
    asked = found(TILED)
    assert asked is not None
    assert {tuple(index.variables for index in r.place.indices) for r in asked.asked} == {(("i",), ())}


@pytest.mark.parametrize("component", [SUM_OF_SQUARES, PRODUCT, i("^ij~ij"), i("+ij~i")])
def test_nothing_is_asked_for_without_gain(component: Component) -> None:
    """Sums keep up with prefetchers; a product's operands are no rows; one pass has no others."""
    assert found(component) is None


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_shares_add_up_and_follow_the_weights(weights: list[int]) -> None:
    counts = shares(weights)
    assert sum(counts) == SHARES
    assert all(abs(count - SHARES * w / sum(weights)) < 1 for count, w in zip(counts, weights, strict=True))
