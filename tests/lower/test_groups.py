"""How many vectors functions are applied to side by side."""

from __future__ import annotations

import pytest

from ilang_eq.lower.groups import AARCH64, AVX512, OTHERS, Grouping, grouped_from


@pytest.mark.parametrize(
    ("grouping", "sizes"),
    [(OTHERS, [1, 2, 3, 4, 1, 2, 1, 4]), (AVX512, [1, 2, 3, 4, 5, 6, 7, 4]), (AARCH64, [1, 2, 3, 4, 5, 6, 7, 8])],
)
def test_groups_divide_what_there_is(grouping: Grouping, sizes: list[int]) -> None:
    assert [grouping.abreast(vectors) for vectors in range(1, 9)] == sizes
    assert all(vectors % grouping.abreast(vectors) == 0 for vectors in range(1, 200))


def test_few_vectors_of_several_loops_go_together() -> None:
    assert grouped_from([6, 2]) == 1
    assert grouped_from([4, 2]) == 0
    assert grouped_from([3, 2, 4]) == 1
    assert grouped_from([9, 1]) is None
