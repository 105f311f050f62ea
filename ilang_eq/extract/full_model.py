"""The full cost model: what a lowered program takes on a machine, in closed form.

Each nest takes as long as the slower of issuing its instructions (``issue``) and moving its data into each level of
the memory hierarchy (``footprint``), most of which overlap; waiting for lines that no prefetcher sees coming, and
entering parallel loops, add to that. Nests of a kernel follow each other.

The arrays are taken to be warm: a program whose buffers all fit a level together moves nothing into it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, prod

from ilang_eq.extract import overlap
from ilang_eq.extract.footprint import LINE, Cache, Extents, Region, Traffic, TranslationBuffer, bytes_of, regions
from ilang_eq.extract.issue import issue_time
from ilang_eq.extract.machine import Level, Machine
from ilang_eq.extract.trips import Loop, evaluate
from ilang_eq.lower.ir import Kernel, Program

TASK_CYCLES = 40.0
"""Finding the position of a task that several loops make up: a division or two."""
IN_FLIGHT = 10.0
"""Unforeseen lines that one core waits for at a time."""
TRANSLATIONS = ((64, 2.0), (1536, 20.0))
"""The page addresses that the two levels of a core's translation buffer hold, on x86-64 and Arm cores of the last ten
years, and the nanoseconds it takes to find one more: in the second level, and in a virtual machine's page tables."""
_NS = 1e-9
_US = 1e-6


@dataclass(frozen=True, slots=True)
class Cost:
    """What a program is expected to take.

    Args:
        seconds: in all.
        terms: what it is made of, as ("kernel: part", seconds). A part is issue or a level to fetch from, which
            overlap, so that they add up to more; or stall or overhead, which do not.
    """

    seconds: float
    terms: tuple[tuple[str, float], ...]

    @property
    def kernels(self) -> int:
        """How many kernels there are."""
        return len({name.partition(": ")[0] for name, _ in self.terms})


@dataclass(frozen=True, slots=True)
class _Part:
    """Issuing instructions, or moving data out of a level; ``shown`` is the share that a longer part does not hide."""

    name: str
    seconds: float
    shown: float


@dataclass(frozen=True, slots=True)
class _NestCost:
    """Seconds of one outermost statement; ``parts`` overlap but for a share, stalls and overhead do not."""

    parts: tuple[_Part, ...]
    stall: float
    overhead: float

    @property
    def seconds(self) -> float:
        """The slowest part, and what does not overlap with it."""
        longest = max(self.parts, key=lambda part: part.seconds)
        hidden = longest.seconds * (1 - longest.shown)
        return sum(part.seconds * part.shown for part in self.parts) + hidden + self.stall + self.overhead


def program_cost(program: Program, extents: Extents, machine: Machine, threads: int) -> Cost:
    """What ``program`` takes at ``extents`` (dimension d of input n under the key (n, d)) on ``threads`` threads."""
    whole = bytes_of((b for b in program.buffers if b.role != "local"), extents)
    seconds = 0.0
    terms: list[tuple[str, float]] = []
    for kernel in program.kernels:
        nests = _kernel(kernel, program, extents, machine, threads, whole)
        launch = machine.kernel_us * _US
        seconds += launch + sum(nest.seconds for nest in nests)
        terms += _terms(kernel.name, nests, launch)
    return Cost(seconds, tuple(terms))


def _kernel(
    kernel: Kernel, program: Program, extents: Extents, machine: Machine, threads: int, whole: float
) -> list[_NestCost]:
    """The outermost statements of ``kernel``, in a program whose buffers take ``whole`` bytes."""
    nodes = evaluate(kernel.body, extents)
    places = iter(regions(nodes, program.buffers, extents))
    padded = frozenset(buffer.name for buffer in program.buffers if buffer.dims and isinstance(buffer.dims[-1], int))
    costs = []
    for node in nodes:
        if isinstance(node, Loop):
            costs.append(_nest(node, next(places), machine, threads, whole, padded))
    loose = tuple(node for node in nodes if not isinstance(node, Loop))
    if loose:
        costs.append(_NestCost((_computing(issue_time(loose, machine, padded)),), 0.0, 0.0))
    return costs


def _nest(
    loop: Loop, region: Region, machine: Machine, threads: int, whole: float, padded: frozenset[str]
) -> _NestCost:
    loops = _tasks(loop)
    tasks = prod(task.trips for task in loops)
    used = max(1, min(threads, ceil(tasks)))
    share = ceil(tasks / used) / tasks if used > 1 else 1.0
    found = tasks * TASK_CYCLES / machine.clock_ghz if len(loops) > 1 else 0.0
    parts = [_computing((issue_time((loop,), machine, padded) + found) * share)]
    stall = 0.0
    for inner, outer in pairwise(machine.levels):
        fetched = Traffic() if whole <= inner.bytes else region.fetched(Cache(inner))
        parts.append(_Part(outer.name, _transfer(fetched.bytes, share, outer) * _NS, overlap.shown(outer)))
        stall += fetched.apart / LINE * outer.latency / IN_FLIGHT * share * _NS
    for entries, cost in TRANSLATIONS:
        stall += region.fetched(TranslationBuffer(entries)).bytes * cost * share * _NS
    return _NestCost(tuple(parts), stall, machine.fork_join_us * _US if used > 1 else 0.0)


def _computing(nanoseconds: float) -> _Part:
    return _Part("issue", nanoseconds * _NS, overlap.COMPUTING)


def _tasks(loop: Loop) -> tuple[Loop, ...]:
    """The loops whose iterations threads share: this one and those perfectly inside it that are as independent."""
    loops = [loop] if loop.parallel else []
    while loops and len(loops[-1].body) == 1:
        inner = loops[-1].body[0]
        if not isinstance(inner, Loop) or inner.reduces or inner.width is not None or not _has_loops(inner):
            break
        loops.append(inner)
    return tuple(loops)


def _has_loops(loop: Loop) -> bool:
    return any(isinstance(node, Loop) for node in loop.body)


def _transfer(amount: float, share: float, level: Level) -> float:
    """Nanoseconds to move ``amount`` bytes out of ``level``, the busiest thread moving ``share`` of them."""
    alone = amount * share / level.bandwidth
    return max(alone, amount / level.bandwidth_all) if level.shared else alone


def _terms(name: str, nests: Iterable[_NestCost], launch: float) -> list[tuple[str, float]]:
    """The parts of a kernel, summed over its nests."""
    total: dict[str, float] = {}
    overhead = launch
    for nest in nests:
        overhead += nest.overhead
        for part, seconds in (*((p.name, p.seconds) for p in nest.parts), ("stall", nest.stall)):
            total[part] = total.get(part, 0.0) + seconds
    return [(f"{name}: {part}", seconds) for part, seconds in (*total.items(), ("overhead", overhead))]
