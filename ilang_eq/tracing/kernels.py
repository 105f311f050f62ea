"""Kernels for regions: each component is optimised once for each bucket of extents, whatever the number of regions.

Numbers in shapes are taken as they are. Sizes that are known only at run time are rounded up to a power of two, their
bucket: a kernel serves every shape, so a sequence of 300 runs with what was found for 512.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ilang_eq.backends import Kernel
from ilang_eq.lang.component import Component
from ilang_eq.optimized import Optimized
from ilang_eq.tracing.region import Region

LOG = logging.getLogger("ilang_eq.trace")

Problem: TypeAlias = tuple[Component, tuple[tuple[int, ...], ...]]
"""What ``optimize`` is asked: a component, and shapes."""


def bucket(size: int) -> int:
    """The power of two that a size known only at run time is rounded up to."""
    return 1 << max(size - 1, 0).bit_length()


class Kernels:
    """The kernels of a traced program, found when they are first needed.

    Args:
        threads: how many threads a kernel may use; None for all cores.
    """

    def __init__(self, threads: int | None) -> None:
        self.threads = threads
        self.found: dict[Problem, Optimized] = {}

    def solve(self, regions: Iterable[Region], sizes: Mapping[str, int], why: str) -> None:
        """Optimise what ``regions`` need at these sizes and is not known yet, and log it with the reason."""
        problems = dict.fromkeys(problem(region, sizes) for region in regions)
        missing = [each for each in problems if each not in self.found]
        if not missing:
            return
        LOG.info("optimising %d components: %s", len(missing), why)
        started = time.perf_counter()
        self.found |= dict(zip(missing, _optimized(missing, self.threads), strict=True))
        LOG.info("optimised %d components in %.1f s", len(missing), time.perf_counter() - started)

    def kernel(self, region: Region, sizes: Mapping[str, int]) -> Kernel:
        """The kernel of a region that has been solved for these sizes."""
        return self.found[problem(region, sizes)].kernel


def _optimized(problems: Sequence[Problem], threads: int | None) -> list[Optimized]:
    """Each problem solved: several in processes of their own, as many at a time as there are cores."""
    from ilang_eq.batch.many import optimize_many
    from ilang_eq.optimizer import optimize

    if len(problems) == 1:
        ((component, shapes),) = problems
        return [optimize(component, shapes, threads=threads)]
    batch = optimize_many(problems, threads=threads, progress=lambda ended: LOG.debug("%s", ended))
    found = zip(problems, batch.best, strict=True)
    return [best or optimize(component, shapes, threads=threads) for (component, shapes), best in found]


def problem(region: Region, sizes: Mapping[str, int]) -> Problem:
    """What is to be optimised for a region when its symbols have these sizes."""
    return region.component, region.shapes({symbol: bucket(size) for symbol, size in sizes.items()})
