"""The full cost model: what a lowered program takes on a machine, in closed form.

Each nest takes as long as the slower of issuing its instructions (``issue``) and moving its data into each level of
the memory hierarchy (``footprint``), most of which overlap. Accumulators are waited for as a part of computing. Waiting
for lines that no prefetcher sees coming, as far as computing does not hide it, and entering parallel loops, add to
that. Nests of a kernel follow each other, and so do the phases of a nest, unless they ask for what the others need
(``lower/passes.py``): those overlap with each other.

The arrays are taken to be warm: a program whose buffers all fit a level together moves nothing into it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from typing import NamedTuple, Protocol

from ilang_eq.extract import overlap
from ilang_eq.extract.footprint import (
    ELEMENT_BYTES,
    LINE,
    PAGE,
    Cache,
    Extents,
    bytes_of,
    size_of,
)
from ilang_eq.extract.issue import Issued, issue_time, issue_times
from ilang_eq.extract.machine import Level, Machine
from ilang_eq.extract.nest_cost import NS, NestCost, Part, computing
from ilang_eq.extract.pages import finding_pages
from ilang_eq.extract.regions import Region, Seen, regions
from ilang_eq.extract.tally import Known, Time
from ilang_eq.extract.tasks import Chunks, Tasks, chunks_of, tasks_of
from ilang_eq.extract.transfers import (
    counted,
    foreseen,
    lines_in_two,
    lost_share,
    moving,
    running_on,
    transfer,
    waiting_for_stores,
    waits_of,
)
from ilang_eq.extract.trips import Loop, copied, evaluate, row_by_row
from ilang_eq.extract.versions import Version, versions
from ilang_eq.lower.addresses import STACK_FLOATS, constant_size
from ilang_eq.lower.collapsing import collapsed
from ilang_eq.lower.fills import in_first_blocks
from ilang_eq.lower.halves import Half, few, halved
from ilang_eq.lower.ir import Buffer, For, Program, Statement
from ilang_eq.lower.passes import passes, worthwhile
from ilang_eq.lower.walk import buffers_of, code
from ilang_eq.lower.widths import dividing

TASK_CYCLES = 40.0
"""Finding the position of tasks that several loops make up: a division or two for each row of the last."""
MIRRORED_CYCLES, MIRRORED_BYTES = 1.0, 3.0 * ELEMENT_BYTES
"""What an element that is copied to its mirror image takes: 0.22 to 0.33 ns in the caches of Zen 3 (64² to 1024²); and
what it moves where they do not hold the matrix, 0.9 to 1.2 ns for 4096²: it is read, its image fetched and written."""
_LONG = PAGE // ELEMENT_BYTES
"""Floats in a row of which one is not yet read when others are begun."""
_US = 1e-6
_RESULTS = ("output", "workspace")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a program is expected to take.

    Args:
        seconds: in all.
        terms: what it is made of, as ("kernel: part", seconds). A part is issue, a level to fetch from, or pages to
            find, which overlap, so that they add up to more; or stall or overhead, which do not.
    """

    seconds: float
    terms: tuple[tuple[str, float], ...] = field(repr=False)

    @property
    def kernels(self) -> int:
        """How many kernels there are."""
        return len({name.partition(": ")[0] for name, _ in self.terms})


class Model(Protocol):
    """A full model of a target."""

    def __call__(self, program: Program, extents: Extents, most: float = inf, /) -> Cost:
        """What ``program`` takes at ``extents``; just ``most`` seconds, if it is certain to take more."""
        ...


@dataclass(frozen=True, slots=True)
class Costed:
    """What was costed before, with everything else the same: schedules often differ in a few loops only.

    Args:
        kernels: by what decides what they cost.
        loops, issued, regions: those of all kernels.
    """

    kernels: dict[Hashable, list[NestCost]] = field(default_factory=dict)
    loops: dict[Loop, Loop] = field(default_factory=dict)
    issued: Issued = field(default_factory=dict)
    regions: Seen = field(default_factory=dict)


def program_cost(
    program: Program,
    extents: Extents,
    machine: Machine,
    threads: int,
    known: Costed | None = None,
    most: float = inf,
) -> Cost:
    """What ``program`` takes in C at ``extents`` (dimension d of input n under the key (n, d)) on ``threads`` threads.

    Args:
        known: what was costed before at the same extents on the same machine, to which this is added.
        most: seconds beyond which it does not matter how many: just these, if it is found to take more.
    """
    known = Costed() if known is None else known
    program = collapsed(program)
    whole = bytes_of(program.buffers, extents)
    fetched = tuple(
        (inner, outer, 1.0 - lost) for inner, outer in pairwise(machine.levels) if (lost := lost_share(whole, inner))
    )
    launch = machine.kernel_us * _US
    seconds = 0.0
    terms: list[tuple[str, float]] = []
    for version in versions(program, extents, machine):
        kernel = version.kernel
        touched = set(buffers_of(kernel.body))
        buffers = tuple(buffer for buffer in version.program.buffers if buffer.name in touched)
        key = kernel.body, buffers, fetched, version.past, version.late
        nests = known.kernels.setdefault(key, [])
        if not nests:
            started, half = halved(in_first_blocks(kernel), {buffer.name: buffer for buffer in buffers})
            left = most - seconds - launch
            found = _nests(started.body, kernel.body, buffers, extents, machine, threads, fetched, known, left, version)
            if found is None:
                return Cost(most, ())
            nests += found
            if half is not None and not few(half.summed, half.rows, extents):
                nests.append(_mirroring(half, extents, machine, threads))
        seconds += launch + sum(nest.seconds for nest in nests)
        terms += _terms(kernel.name, nests, launch)
    return Cost(seconds, tuple(terms))


def _nests(
    body: Sequence[Statement],
    before: Sequence[Statement],
    buffers: Sequence[Buffer],
    extents: Extents,
    machine: Machine,
    threads: int,
    fetched: Sequence[tuple[Level, Level, float]],
    costed: Costed,
    most: float,
    version: Version,
) -> list[NestCost] | None:
    """The outermost statements ``body`` of a kernel that touches ``buffers``; None if they take more than ``most``.

    Args:
        before: the statements before sums began in their first blocks, which is when threads get their shares.
        fetched: the levels that do not keep the whole program, each with the one that it is fetched from.
        most: seconds; what is found to take more is not gone into further.
        version: what goes past the caches, and when.
    """
    nodes = evaluate(body, extents, seen=costed.loops)
    known = _known(buffers, extents)
    costs: list[NestCost] = []
    nests = [statement for statement in body if isinstance(statement, For) and not statement.seldom]
    unfilled = {statement.variable: statement for statement in before if isinstance(statement, For)}
    first = [unfilled.get(nest.variable, nest) for nest in nests]
    loops = tuple(zip((node for node in nodes if isinstance(node, Loop)), first, strict=True))
    chunks = [chunks_of(loop, nest, buffers) for loop, nest in loops]
    tasks = [
        (loop, tasks_of(loop, nest, cut, threads, extents)) for (loop, nest), cut in zip(loops, chunks, strict=True)
    ]
    through = machine.levels[-1].written
    through, past = (max(machine.fetched, through), machine.past) if machine.past_caches else (through, through)
    results = (b.name for b in buffers if b.role in _RESULTS)
    written = {name: past if name in version.past else through for name in results}
    issued = [_issued(loop, shared, machine, threads, known, costed.issued) for loop, shared in tasks]
    left = most - sum(issue.seconds for issue in issued)
    if left < 0.0:
        return None
    places = regions(nodes, buffers, extents, machine, costed.regions)
    for issue, place, nest, cut in zip(issued, places, nests, chunks, strict=True):
        ahead = 1 if version.late else _asked_ahead(nest, buffers, extents)
        cost = _nest(issue, place, machine, fetched, known, ahead, written, left + issue.seconds)
        if cost is None:
            return None
        cost = cost if cut is None else _with_results(cost, cut, extents, machine, issue.share)
        left -= cost.seconds - issue.seconds
        costs.append(cost)
    loose = tuple(node for node in nodes if not isinstance(node, Loop))
    if loose:
        costs.append(NestCost(((computing(issue_time(loose, machine, known)),),)))
    return costs


def _known(buffers: Sequence[Buffer], extents: Extents) -> Known:
    """What is known of ``buffers`` before anything is of the loops."""
    rows = {b.name: (b.dims[-1], len(b.dims)) for b in buffers if b.dims}
    padded = frozenset(name for name, (width, _) in rows.items() if isinstance(width, int) and dividing(width) > 1)
    short = {name: rank for name, (width, rank) in rows.items() if isinstance(width, int) and width < _LONG}
    panels = frozenset(name for name, rank in short.items() if rank > 1)
    asked = panels - {b.name for b in buffers if b.role == "local" and _on_stack(b)}
    results = (b for b in buffers if b.dims and b.role in _RESULTS)
    ragged = frozenset(b.name for b in results if size_of(b.dims[-1], extents) * ELEMENT_BYTES % LINE)
    return Known(padded, panels, asked, ragged=ragged)


class _Issued(NamedTuple):
    """What issuing a nest takes: ``times`` are nanoseconds by phase of the busiest thread, ``spare`` those of no loads.

    It has the part ``share`` of the work. Threads come together ``entered`` times. Phases that add what functions
    compute to rows in memory are marked in ``rows``; those that copy rows of a buffer have its name in ``copied``.
    """

    times: tuple[float, ...]
    spare: tuple[float, ...]
    rows: tuple[bool, ...]
    copied: tuple[str, ...]
    share: float
    entered: float

    @property
    def seconds(self) -> float:
        """All together."""
        return sum(self.times) * NS


def _issued(loop: Loop, tasks: Tasks, machine: Machine, threads: int, known: Known, seen: Issued) -> _Issued:
    used = tasks.used(threads)
    share = tasks.share(used)
    search = tasks.positions * TASK_CYCLES / machine.clock_ghz
    times = [time.times(share) for time in (*issue_times(loop, machine, known, seen), Time(search))]
    issued, spare = tuple([time.all for time in times]), tuple([time.spare for time in times])
    rows = (*row_by_row(loop), False)
    names = (*copied(loop), "")
    return _Issued(issued, spare, rows, names, share, tasks.entered if used > 1 else 0.0)


def _nest(
    issued: _Issued,
    region: Region,
    machine: Machine,
    fetched: Sequence[tuple[Level, Level, float]],
    known: Known,
    ahead: int,
    written: Mapping[str, float],
    most: float,
) -> NestCost | None:
    """A nest with what it moves; None if that is found to take more than ``most``.

    Passes over so many rows at a time ask for what they need ``ahead``; 0 if nothing does.
    Of what it has ``written``, by buffer, a byte that goes to memory counts as so many.

    What another level moves makes no nest faster: the more the longest part takes, the less of the others shows, but by
    a share of that.
    """
    shares = overlap.Shares.of(machine)
    cost = NestCost(tuple((computing(time, shares),) for time in issued.times))
    for inner, outer, there in fetched:
        moved = [
            foreseen(*phase) for phase in zip(region.phases(Cache(inner, outer), there), issued.copied, strict=False)
        ]
        if inner is machine.levels[0]:
            cost = lines_in_two(cost, region, moved, issued.spare, machine, issued.share)
        if outer is machine.levels[-1]:
            own = {name: each for name, each in written.items() if name in region.whole and region.whole[name].written}
            moved = [counted(phase, own, outer) for phase in moved]
        waits = [0.0] * region.count if ahead else waits_of(region, moved, outer, machine, written)
        cost = moving(cost, region, moved, waits, outer, known, issued.share, machine)
        if outer.shared:
            cost = cost.running_on(outer.name, running_on(region, moved, machine))
        if (cost.merged(ahead == 1) if ahead else cost).seconds > most:
            return None
    cost = finding_pages(cost, region, machine, issued.share)
    cost = waiting_for_stores(cost, issued.rows, machine)
    cost = replace(cost, overhead=machine.fork_join_us * _US * issued.entered)
    return cost.merged(ahead == 1) if ahead else cost


def _with_results(cost: NestCost, chunks: Chunks, extents: Extents, machine: Machine, share: float) -> NestCost:
    """``cost`` with filling the results of ``chunks`` with zeros, which threads ``share``, and adding them up."""
    bytes_ = bytes_of(chunks.results, extents)
    level = next(level for level in machine.levels if bytes_ <= level.bytes)
    moved = bytes_ * (level.written * share + 1.0) / level.bandwidth
    return replace(cost, stall=cost.stall + chunks.rows * moved * NS)


def _mirroring(half: Half, extents: Extents, machine: Machine, threads: int) -> NestCost:
    """Copying the other half of a symmetric result (``c/mirror.py``)."""
    bytes_ = bytes_of((half.buffer,), extents)
    copied, inner, memory = bytes_ / ELEMENT_BYTES / 2.0, machine.levels[-2], machine.levels[-1]
    issue = computing(copied * MIRRORED_CYCLES / machine.clock_ghz / threads)
    moved = transfer(MIRRORED_BYTES * copied * lost_share(bytes_, inner), 1.0 / threads, memory) * NS
    return NestCost(((issue, Part(memory.name, moved, moved, memory.shared)),))


def _asked_ahead(nest: For, buffers: Iterable[Buffer], extents: Extents) -> int:
    """How many rows at a time the passes of a loop in ``nest`` go through that ask for more; 0 if none do."""
    by_name = {buffer.name: buffer for buffer in buffers}
    loop = nest
    while (found := passes(loop, by_name)) is None:
        match code(loop.body):
            case (For() as inner,):
                loop = inner
            case _:
                return 0
    sizes = ([size_of(size, extents) for size in by_name[request.place.buffer].dims] for request in found.asked)
    return loop.step if any(worthwhile(size, loop.step) for size in sizes) else 0


def _on_stack(local: Buffer) -> bool:
    """Whether it lies on a thread's stack (``c/layout.py``), as long as no others have taken the room."""
    size = constant_size(local)
    return size is not None and size <= STACK_FLOATS


def _terms(name: str, nests: Iterable[NestCost], launch: float) -> list[tuple[str, float]]:
    """The parts of a kernel, summed over its nests."""
    total: dict[str, float] = {}
    overhead = launch
    for nest in nests:
        overhead += nest.overhead
        parts = ((part.name, part.seconds) for phase in nest.phases for part in phase)
        for part, seconds in (*parts, ("stall", nest.stall)):
            total[part] = total.get(part, 0.0) + seconds
    return [(f"{name}: {part}", seconds) for part, seconds in (*total.items(), ("overhead", overhead))]
