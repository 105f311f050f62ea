"""How well predicted costs rank schedules that were timed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]

TOP = 8
APART = 1.1
"""Times that differ by more than this factor should be ranked right."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How predictions compare with measurements of the same schedules.

    Args:
        top1: how much longer than the fastest the schedule with the lowest prediction takes, 0.05 for 5 %.
        top8: the same for the fastest of the eight lowest predictions.
        tau: Kendall's rank correlation (τ-b), from -1 to 1.
        pairs: of the pairs whose times are more than 10 % apart, the share predicted in the right order.
        error: the median of how far predictions are off, as a factor above 1.
    """

    top1: float
    top8: float
    tau: float
    pairs: float
    error: float


@dataclass(frozen=True, slots=True)
class Noise:
    """What a second measurement of the same schedules would score as a prediction of the first.

    Args:
        spread: the median relative difference between the two.
        top1, tau, pairs: as in ``Ranking``.
    """

    spread: float
    top1: float
    tau: float
    pairs: float


def ranking(predicted: Sequence[float] | Numbers, measured: Sequence[float] | Numbers) -> Ranking:
    """Judge seconds ``predicted`` by seconds ``measured``, of at least two schedules."""
    p, m = np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    fastest = m.min()
    error = float(np.exp(np.median(np.abs(np.log(p / m)))))
    return Ranking(m[order[0]] / fastest - 1, m[order[:TOP]].min() / fastest - 1, _tau(p, m), _pairs(p, m), error)


def noise(samples: Sequence[Sequence[float]]) -> Noise:
    """The noise floor of repeated timings: the even rounds judged by the odd ones."""
    timed = [s for s in samples if len(s) > 1]
    even, odd = best_of(s[::2] for s in timed), best_of(s[1::2] for s in timed)
    found = ranking(even, odd)
    return Noise(float(np.median(np.abs(even / odd - 1))), found.top1, found.tau, found.pairs)


def best_of(samples: Iterable[Sequence[float]]) -> Numbers:
    """The least of each schedule's timings: what disturbs a timing only adds to it."""
    return np.array([min(s) for s in samples], dtype=np.float64)


def mean_regret(regrets: Iterable[float]) -> float:
    """The geometric mean of regrets, as slowdowns."""
    return float(np.exp(np.mean(np.log1p(list(regrets))))) - 1


def _tau(a: Numbers, b: Numbers) -> float:
    x, y = _signs(a), _signs(b)
    ties = np.sqrt(float(np.abs(x).sum()) * float(np.abs(y).sum()))
    return float((x * y).sum() / ties) if ties else 0.0


def _pairs(predicted: Numbers, measured: Numbers) -> float:
    """A tie counts as half right; 1 if no times are apart."""
    apart = measured[:, None] > APART * measured[None, :]
    right = (_signs(predicted)[apart] + 1) / 2
    return float(right.mean()) if right.size else 1.0


def _signs(values: Numbers) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Which of two is larger, infinities included."""
    rows, columns = values[:, None], values[None, :]
    return np.greater(rows, columns).astype(np.float64) - np.less(rows, columns)
