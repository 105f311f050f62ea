"""Vectors for tiles."""

from __future__ import annotations

import pytest

from ilang_eq.lower.widths import WIDTHS, covering, dividing, masked, narrower


@pytest.mark.parametrize(("limit", "lanes"), [(64, 16), (24, 8), (12, 4), (14, 1), (1, 1)])
def test_the_widest_vector_that_divides(limit: int, lanes: int) -> None:
    assert dividing(limit) == lanes


@pytest.mark.parametrize(
    ("limit", "lanes"), [(14, 16), (9, 16), (6, 8), (5, 8), (18, 16), (12, 16), (24, 8), (40, 8), (3, 1)]
)
def test_under_a_mask_as_few_vectors_as_possible(limit: int, lanes: int) -> None:
    """What a vector of 8 divides takes no mask, and a few floats no vector."""
    assert masked(limit) == lanes


def test_masked_vectors_are_as_few_as_the_widest() -> None:
    for limit in range(4, 200):
        if dividing(limit) < 8:
            assert -(-limit // masked(limit)) == -(-limit // max(WIDTHS))


@pytest.mark.parametrize(("limit", "fewer"), [(16, []), (48, [32, 16]), (128, [96, 64, 32])])
def test_fewer_lanes_that_have_code_of_their_own(limit: int, fewer: list[int]) -> None:
    assert list(narrower(limit)) == fewer


@pytest.mark.parametrize(("length", "lanes"), [(1, 16), (16, 16), (17, 32), (40, 48), (49, 64), (64, 64)])
def test_a_short_tile_takes_the_fewest_lanes_that_have_code(length: int, lanes: int) -> None:
    assert covering(length, 64) == lanes
