"""Kernels for regions: each component is optimised once for each bucket of extents, whatever the number of regions.

Numbers in shapes are taken as they are. Sizes that are known only at run time are rounded up to a power of two, their
bucket: a kernel serves every shape, so a sequence of 300 runs with what was found for 512.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ilang_eq.backends import Kernel
from ilang_eq.batch.tasks import Task
from ilang_eq.errors import TraceError
from ilang_eq.lang.component import Component
from ilang_eq.optimized import Optimized
from ilang_eq.request import checked_effort
from ilang_eq.tracing.region import Region

LOG = logging.getLogger("ilang_eq.trace")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be optimised and built: a component for ``shapes``, its inputs number ``constants`` prepared."""

    component: Component
    shapes: tuple[tuple[int, ...], ...]
    constants: tuple[int, ...] = ()

    def task(self, count: int = 1) -> Task:
        """The same for ``optimize_many``, as it is needed ``count`` times."""
        return Task(self.component, self.shapes, float(count), constants=tuple(f"in{k}" for k in self.constants))


def bucket(size: int) -> int:
    """The power of two that a size known only at run time is rounded up to."""
    return 1 << max(size - 1, 0).bit_length()


class Kernels:
    """The kernels of a traced program, found and built when they are first needed.

    Args:
        threads: how many threads a kernel may use; None for all cores.
        effort: as ``optimize`` takes it: "model", or "measure" to time the best few of each problem.

    Raises:
        OptionError: another effort.
    """

    def __init__(self, threads: int | None, effort: str = "model") -> None:
        self.threads = threads
        self.effort = checked_effort(effort)
        self.found: dict[Problem, Optimized] = {}

    def solve(self, regions: Iterable[Region], sizes: Mapping[str, int], why: str) -> None:
        """Optimise and build what ``regions`` need at these sizes and is not known yet, and log it with the reason.

        Raises:
            TraceError: a search failed.
            BuildError: a kernel cannot be compiled.
        """
        problems = dict.fromkeys(problem(region, sizes) for region in regions)
        missing = [each for each in problems if each not in self.found]
        if not missing:
            return
        LOG.info("optimising %d components: %s", len(missing), why)
        started = time.perf_counter()
        self.found |= dict(zip(missing, self._built(missing), strict=True))
        LOG.info("optimised and built %d components in %.1f s", len(missing), time.perf_counter() - started)

    def kernel(self, region: Region, sizes: Mapping[str, int]) -> Kernel:
        """The kernel of a region that has been solved for these sizes."""
        return self.found[problem(region, sizes)].kernel

    def _built(self, problems: Sequence[Problem]) -> list[Optimized]:
        """Each problem solved, in processes of their own, and what was found compiled beside the searches under way."""
        from ilang_eq.batch.many import optimize_many
        from ilang_eq.batch.progress import Progress
        from ilang_eq.c.build import building
        from ilang_eq.c.kernel import CKernel

        with building() as build:

            def ended(progress: Progress) -> None:
                LOG.debug("%s", progress)
                kernel = None if progress.best is None else progress.best.kernel
                if isinstance(kernel, CKernel):
                    for source in [s for n in progress.tasks for s in kernel.sources(problems[n].constants)]:
                        build(source)

            batch = optimize_many(
                [each.task() for each in problems], threads=self.threads, effort=self.effort, progress=ended
            )
            for failed in batch.failed:
                raise TraceError(f"no kernel for {problems[failed.tasks[0]].component}: {failed.error}")
        return [best for best in batch.best if best is not None]


def problem(region: Region, sizes: Mapping[str, int]) -> Problem:
    """What is to be optimised for a region when its symbols have these sizes; where there is nothing, as if for one."""
    shapes = region.shapes({symbol: bucket(size) for symbol, size in sizes.items()})
    some = tuple(tuple(max(n, 1) for n in shape) for shape in shapes)
    return Problem(region.component, some, region.constants)
