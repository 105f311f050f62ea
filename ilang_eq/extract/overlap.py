"""How much of the shorter parts of some work shows beside the longest: computing, and each level's transfers.

The ECM model (arXiv 1509.03118) has no transfers between levels overlap with one another; out-of-order cores and
prefetchers hide most of them. The share is fitted by hand to some 300 schedules of a product, attention with and
without a soft-cap, softmax, a log-sum-exp and a Gaussian sum, on a core of Emerald Rapids (papers_notes/ecm.md).
"""

from __future__ import annotations

from ilang_eq.extract.machine import Level

SHOWN = 0.3
"""The share of what is shorter that shows beside something longer."""

ASKED = 0.15
"""The same of what is asked for ahead (``c/ahead.py``). Of 0.3, 0.15, 0.1, 0.05 and 0, softmax and attention are ranked
best with this, and the other workloads of ``benchmarks.ranking`` alike, on Cascade Lake."""

UNDER = 2.0
"""How soon what comes out of a level beyond the core's own caches, or of any where ``Machine.early`` says so, shows
beside computing: from half as long on, as much as anything. Shorter transfers, as those of products, hide under it: on
Zen 3 the search finds tiles for SwiGLU and a Gaussian sum that take 0.98 and 0.96 of the time."""

EXPOSED = 0.1
"""The share of unforeseen transfers into the first level that shows: an out-of-order core hides a wait of 15 cycles,
but not one of 80 or 300."""


def exposed(level: Level) -> float:
    """The share of unforeseen transfers out of ``level`` that shows."""
    return 1.0 if level.shared else EXPOSED
