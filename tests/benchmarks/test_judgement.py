from __future__ import annotations

import math

import pytest

from benchmarks.judgement import best_of, mean_regret, noise, ranking


def test_a_perfect_ranking() -> None:
    found = ranking([1, 2, 3, 4], [10, 20, 30, 40])
    assert (found.top1, found.top8, found.tau, found.pairs) == (0, 0, 1, 1)
    assert found.error == pytest.approx(10)


def test_a_reversed_ranking() -> None:
    found = ranking([4, 3, 2, 1], [10, 20, 30, 40])
    assert found.top1 == pytest.approx(3)
    assert found.top8 == 0
    assert (found.tau, found.pairs) == (-1, 0)


def test_regret_of_the_best_of_eight() -> None:
    measured = [20.0] * 8 + [10.0]
    found = ranking(list(range(1, 10)), measured)
    assert found.top1 == pytest.approx(1)
    assert found.top8 == pytest.approx(1)


def test_only_pairs_that_are_apart_count() -> None:
    assert ranking([2, 1, 3], [10, 10.5, 20]).pairs == 1
    assert ranking([2, 1, 1], [10, 11.5, 20]).pairs == pytest.approx((0 + 0 + 0.5) / 3)
    assert ranking([1, 2], [10, 10.5]).pairs == 1


def test_tau_with_ties_and_infinities() -> None:
    assert ranking([1, 1, 2], [10, 20, 30]).tau == pytest.approx(2 / math.sqrt(6))
    assert ranking([1, math.inf, math.inf], [10, 20, 30]).tau == pytest.approx(2 / math.sqrt(6))
    assert ranking([1, 1], [10, 20]).tau == 0


def test_noise_compares_rounds_with_each_other() -> None:
    still = noise([[1.0, 1.0, 1.0], [2.0, 2.0], [9.0]])
    assert (still.spread, still.top1, still.tau, still.pairs) == (0, 0, 1, 1)
    swapped = noise([[1.0, 2.0], [2.0, 1.0]])
    assert (swapped.top1, swapped.tau) == (1, -1)
    assert swapped.spread == pytest.approx(0.75)


def test_the_least_time_counts_and_slowdowns_average_geometrically() -> None:
    assert best_of([[3.0, 2.0], [5.0]]).tolist() == [2.0, 5.0]
    assert mean_regret([0.0, 3.0]) == pytest.approx(1)
