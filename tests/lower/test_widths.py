"""Vectors for tiles."""

from __future__ import annotations

import pytest

from ilang_eq.lower.widths import WIDTHS, dividing, masked


@pytest.mark.parametrize(("limit", "lanes"), [(64, 16), (24, 8), (12, 4), (14, 1), (1, 1)])
def test_the_widest_vector_that_divides(limit: int, lanes: int) -> None:
    assert dividing(limit) == lanes


@pytest.mark.parametrize(("limit", "lanes"), [(14, 16), (9, 16), (6, 8), (5, 8), (18, 16), (12, 4), (3, 1)])
def test_under_a_mask_as_few_vectors_as_possible(limit: int, lanes: int) -> None:
    """What a vector divides takes no mask, and a few floats no vector."""
    assert masked(limit) == lanes


def test_masked_vectors_are_as_few_as_the_widest() -> None:
    for limit in range(4, 200):
        if dividing(limit) == 1:
            assert -(-limit // masked(limit)) == -(-limit // max(WIDTHS))
