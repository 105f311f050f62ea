"""The full cost model: what a lowered program takes on a machine, in closed form.

Each nest takes as long as the slower of issuing its instructions (``issue``) and moving its data into each level of
the memory hierarchy (``footprint``), most of which overlap. Accumulators are waited for as a part of computing. Waiting
for lines that no prefetcher sees coming, as far as computing does not hide it, and entering parallel loops, add to
that. Nests of a kernel follow each other, and so do the phases of a nest, unless they ask for what the others need
(``lower/passes.py``): those overlap with each other.

The arrays are taken to be warm: a program whose buffers all fit a level together moves nothing into it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from typing import NamedTuple, Protocol

from ilang_eq.extract import overlap
from ilang_eq.extract.footprint import (
    ELEMENT_BYTES,
    LINE,
    PAGE,
    WAITED_FAR,
    ByBuffer,
    Cache,
    Extents,
    Room,
    Traffic,
    bytes_of,
    room_of,
    size_of,
)
from ilang_eq.extract.issue import Issued, issue_time, issue_times
from ilang_eq.extract.machine import Level, Machine
from ilang_eq.extract.nest_cost import NS, NestCost, Part, Phase, computing
from ilang_eq.extract.pages import finding_pages
from ilang_eq.extract.regions import Region, Seen, regions
from ilang_eq.extract.streams import gained, together
from ilang_eq.extract.tally import Known
from ilang_eq.extract.tasks import Chunks, Tasks, chunks_of, tasks_of
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
BEGINS = 0.9
"""The part of memory's latency that a phase waits as it begins to read a row after another one has read something else.
Decode attention in blocks of 256 keys, which go from keys to values and back 1024 times, takes 1.085 times as long on
Zen 4 as with all keys before all values. Prefetchers that go by the instruction go on where they were: on Zen 5 rows of
1000 floats of two arrays, in three passes, take 1.0 of the time that reading them takes."""
WINDOW = 320.0
"""Instructions that a core looks ahead, for which ``footprint.CROWDS`` holds. On Zen 5, which looks 448 ahead, lines of
which 5 to 10 times as many as there are places for take turns come every 1.9 ns, 0.54 of the second level's latency."""
MIRRORED_CYCLES, MIRRORED_BYTES = 1.0, 3.0 * ELEMENT_BYTES
"""What an element that is copied to its mirror image takes: 0.22 to 0.33 ns in the caches of Zen 3 (64² to 1024²); and
what it moves where they do not hold the matrix, 0.9 to 1.2 ns for 4096²: it is read, its image fetched and written."""
MUCH = 0.05
"""The part of all that comes out of memory that it reads at least."""
STOPS = 1.4
"""Of so many times as many bytes as prefetchers run on for, none is there in time."""
_LONG = PAGE // ELEMENT_BYTES
"""Floats in a row of which one is not yet read when others are begun."""
_US = 1e-6


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
        (inner, outer, 1.0 - lost) for inner, outer in pairwise(machine.levels) if (lost := _lost(whole, inner))
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
    rows = {b.name: (b.dims[-1], len(b.dims)) for b in buffers if b.dims}
    padded = frozenset(name for name, (width, _) in rows.items() if isinstance(width, int) and dividing(width) > 1)
    short = {name: rank for name, (width, rank) in rows.items() if isinstance(width, int) and width < _LONG}
    panels = frozenset(name for name, rank in short.items() if rank > 1)
    known = Known(padded, panels, panels - {b.name for b in buffers if b.role == "local" and _on_stack(b)})
    costs: list[NestCost] = []
    nests = [statement for statement in body if isinstance(statement, For) and not statement.seldom]
    unfilled = {statement.variable: statement for statement in before if isinstance(statement, For)}
    first = [unfilled.get(nest.variable, nest) for nest in nests]
    loops = tuple(zip((node for node in nodes if isinstance(node, Loop)), first, strict=True))
    chunks = [chunks_of(loop, nest, buffers) for loop, nest in loops]
    tasks = [(loop, tasks_of(loop, nest, cut, threads)) for (loop, nest), cut in zip(loops, chunks, strict=True)]
    results = (b.name for b in buffers if b.role in ("output", "workspace"))
    through = machine.levels[-1].written
    through, past = (max(machine.fetched, through), machine.past) if machine.past_caches else (through, through)
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


class _Issued(NamedTuple):
    """What issuing a nest takes: ``times`` are nanoseconds by phase of the busiest thread.

    It has the part ``share`` of the work. Threads come together ``entered`` times. Phases that add what functions
    compute to rows in memory are marked in ``rows``; those that copy rows of a buffer have its name in ``copied``.
    """

    times: tuple[float, ...]
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
    times = (*issue_times(loop, machine, known, seen), search)
    rows = (*row_by_row(loop), False)
    names = (*copied(loop), "")
    return _Issued(tuple([time * share for time in times]), rows, names, share, tasks.entered if used > 1 else 0.0)


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
            _asked(*phase) for phase in zip(region.phases(Cache(inner, outer), there), issued.copied, strict=False)
        ]
        if inner is machine.levels[0]:
            cost = _lines_in_two(cost, region, moved, machine, issued.share)
        if outer is machine.levels[-1]:
            own = {name: each for name, each in written.items() if name in region.whole and region.whole[name].written}
            moved = [_counted(phase, own, outer) for phase in moved]
        waits = [0.0] * region.count if ahead else _waits(region, moved, outer, machine, written)
        cost = _moving(cost, region, moved, waits, outer, known, issued.share, machine)
        if outer.shared:
            cost = cost.running_on(outer.name, _running_on(region, moved, machine))
        if (cost.merged(ahead == 1) if ahead else cost).seconds > most:
            return None
    cost = finding_pages(cost, region, machine, issued.share)
    cost = _waiting_for_stores(cost, issued.rows, machine)
    cost = replace(cost, overhead=machine.fork_join_us * _US * issued.entered)
    return cost.merged(ahead == 1) if ahead else cost


def _with_results(cost: NestCost, chunks: Chunks, extents: Extents, machine: Machine, share: float) -> NestCost:
    """``cost`` with filling the results of ``chunks`` with zeros, which threads ``share``, and adding them up."""
    bytes_ = bytes_of(chunks.results, extents)
    level = next(level for level in machine.levels if bytes_ <= level.bytes)
    moved = bytes_ * (level.written * share + 1.0) / level.bandwidth
    return replace(cost, stall=cost.stall + chunks.rows * moved * NS)


def _running_on(region: Region, moves: Sequence[ByBuffer], machine: Machine) -> list[float]:
    """The share of what each phase ``moves`` that prefetchers bring while others compute: what it reads in order.

    They run on for ``Machine.runs_on`` bytes, if each iteration goes on where the one before it ended.
    """
    loop = region
    while len(loop.loops) == 1:
        (loop,) = loop.loops
    if not machine.runs_on or not loop.loops:
        return []
    names = {name for phase in moves for name, moved in phase.items() if moved.streams}
    read = [loop.iteration[name] for name in names if name in loop.iteration]
    if not read or any(span.runs > 1.0 for span in read):
        return []
    near = 1.0 - Room(machine.runs_on, STOPS * machine.runs_on).lost(sum(span.bytes for span in read))
    return [near * _part(phase, names) for phase in moves]


def _part(moved: ByBuffer, names: Set[str]) -> float:
    """The part of what is ``moved`` that the buffers ``names`` have."""
    everything = sum([traffic.all for traffic in moved.values()])
    return sum([traffic.all for name, traffic in moved.items() if name in names]) / everything if everything else 0.0


def _asked(found: ByBuffer, copied: str) -> ByBuffer:
    """``found``, where rows that are ``copied`` do not come unforeseen."""
    if copied not in found or not found[copied].apart:
        return found
    moved = found[copied]
    return {**found, copied: moved._replace(bytes=moved.bytes + moved.apart, apart=0.0)}


def _mirroring(half: Half, extents: Extents, machine: Machine, threads: int) -> NestCost:
    """Copying the other half of a symmetric result (``c/mirror.py``)."""
    bytes_ = bytes_of((half.buffer,), extents)
    copied, inner, memory = bytes_ / ELEMENT_BYTES / 2.0, machine.levels[-2], machine.levels[-1]
    issue = computing(copied * MIRRORED_CYCLES / machine.clock_ghz / threads)
    moved = _transfer(MIRRORED_BYTES * copied * _lost(bytes_, inner), 1.0 / threads, memory) * NS
    return NestCost(((issue, Part(memory.name, moved, moved, memory.shared)),))


def _counted(moves: ByBuffer, written: Mapping[str, float], memory: Level) -> ByBuffer:
    """What ``moves`` to ``memory``, where a byte that is ``written`` counts as so many, not as for all."""
    factors = {name: each / memory.written for name, each in written.items()}
    return {name: moved.times(factors.get(name, 1.0)) for name, moved in moves.items()}


def _lines_in_two(
    cost: NestCost, region: Region, moves: Sequence[ByBuffer], machine: Machine, share: float
) -> NestCost:
    """``cost`` with what it takes to issue that lines of what ``moves`` into the nearest cache are read twice.

    A part of a row lies in a line more, which moves as well (``lines_of``).
    """
    cycles = {
        buffer: machine.split_part_cycles if span.pace.jump else machine.split_cycles
        for buffer, span in region.whole.items()
        if span.split
    }
    phases: list[Phase] = []
    for (issue, *others), found in zip(cost.phases, moves, strict=False):
        read = sum(traffic.all / LINE * cycles.get(buffer, 0.0) for buffer, traffic in found.items())
        phases.append((computing(issue.seconds / NS + read / machine.clock_ghz * share, issue.shares), *others))
    return replace(cost, phases=(*phases, *cost.phases[len(phases) :]))


def _waits(
    region: Region, moves: Sequence[ByBuffer], outer: Level, machine: Machine, written: Mapping[str, float]
) -> list[float]:
    """Nanoseconds that each phase waits for the starts of rows, and of pages of rows that take turns."""
    begins = outer is machine.levels[-1] and not machine.by_instruction
    begun = _begun(region, moves, written) if begins else [0.0] * region.count
    turning = (sum(moved.turning for moved in phase.values()) / PAGE for phase in moves)
    pairs = zip(begun, turning, strict=False)
    return [(BEGINS * times + outer.turns * pages) * outer.latency for times, pages in pairs]


def _begun(region: Region, moves: Sequence[ByBuffer], written: Mapping[str, float]) -> list[float]:
    """How often each phase begins to read what comes out of memory, after others have read something else.

    No oftener than a page comes: where little does, the rest is found in a cache.
    """
    read = [sum(moved.bytes for name, moved in phase.items() if name not in written) for phase in moves]
    begun = region.begun([bytes_ > MUCH * sum(read) for bytes_ in read])
    return [min(times, bytes_ / PAGE) for times, bytes_ in zip(begun, read, strict=True)]


def _moving(
    cost: NestCost,
    region: Region,
    moves: Sequence[ByBuffer],
    waits: Sequence[float],
    outer: Level,
    known: Known,
    share: float,
    machine: Machine,
) -> NestCost:
    """``cost`` with what ``moves`` phase by phase out of ``outer``, of which each ``waits`` so many nanoseconds."""
    phases: list[Phase] = []
    stall = cost.stall
    gains = machine.levels[-1].abreast > 1.0
    in_order = region.in_order - known.panels if machine.early else ()
    for parts, found, waiting in zip(cost.phases, moves, waits, strict=False):
        moved = Traffic.total(found.values())
        spared, asked = _sooner(found, outer, known, gains)
        unforeseen = _unforeseen(moved, share, outer, machine)
        hides = machine.hides if outer.shared else max(machine.hides, machine.hides_near)
        hidden = hides * unforeseen
        hidden += waiting * share
        # out of a core's own caches what nobody sees coming takes as long to move as what is foreseen, or asked for
        own = () if outer.shared else found.items()
        bytes_ = moved.bytes + sum([t.apart for buffer, t in own if buffer not in known.panels])
        seconds, awaited = ((_transfer(bytes_ - less, share, outer) + hidden) * NS for less in (spared, asked))
        waited = moved.waited * (WAITED_FAR if outer.shared else machine.sums_wait) / machine.window / outer.bandwidth
        issue, *others = parts
        computed = computing(issue.seconds / NS + waited * share, issue.shares)
        followed = _transfer(sum([found[name].bytes for name in in_order if name in found]), share, outer) * NS
        part = Part(outer.name, seconds, awaited, outer.shared, machine.early, min(followed, awaited), issue.shares)
        phases.append((computed, *others, part))
        stall += (1.0 - hides) * unforeseen * NS
    # last comes finding positions, which moves nothing
    return replace(cost, phases=(*phases, *cost.phases[len(phases) :]), stall=stall)


def _sooner(found: ByBuffer, outer: Level, known: Known, gains: bool) -> tuple[float, float]:
    """The bytes not to be counted, as streams come quicker if memory ``gains`` by them, and those asked for ahead."""
    share = float(gained(together(found.values()))) if gains and found else 0.0
    read = sum([traffic.bytes for traffic in found.values() if traffic.streams]) if share else 0.0
    panels = [traffic for buffer, traffic in found.items() if buffer in known.panels]
    loose = read - sum([traffic.bytes for traffic in panels if traffic.streams])
    asked = share * loose + sum([traffic.bytes for traffic in panels])
    return share * read * (1.0 - 1.0 / outer.abreast), asked


def _waiting_for_stores(cost: NestCost, rows: Sequence[bool], machine: Machine) -> NestCost:
    """``cost`` without overlap of computing and memory where rows in memory are added to: stores wait for both."""
    memory = machine.levels[-1].name
    hidden = 0.0
    for parts, adds in zip(cost.phases, rows, strict=True):
        moved = next((part.seconds for part in parts if part.name == memory), 0.0)
        hidden += (1.0 - machine.shown) * min(parts[0].seconds, moved) if adds else 0.0
    return replace(cost, stall=cost.stall + hidden)


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


def _lost(whole: float, level: Level) -> float:
    """The share of the ``whole`` bytes of a program that is gone from ``level`` when it runs again.

    Others use what is shared meanwhile.
    """
    return room_of(level).lost(whole / level.bytes) if level.shared else float(whole > level.bytes)


def _unforeseen(moved: Traffic, share: float, level: Level, machine: Machine) -> float:
    """Nanoseconds for lines that come unforeseen, so many at a time.

    Nor do prefetchers help lines that contend for few places; a core that looks further ahead waits less for each.
    """
    apart = moved.apart * overlap.exposed(level) * max(LINE / level.bandwidth, level.loaded_latency / machine.in_flight)
    waits = level.latency * min(1.0, WINDOW / machine.window)
    contending = max(moved.contending * LINE / level.bandwidth, moved.crowded * waits)
    return (apart + contending) / LINE * share


def _transfer(amount: float, share: float, level: Level) -> float:
    """Nanoseconds to move ``amount`` bytes out of ``level``, the busiest thread moving ``share`` of them."""
    alone = amount * share / level.bandwidth
    return max(alone, amount / level.bandwidth_all) if level.shared else alone


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
