"""What the phases of a nest move out of a level of the memory hierarchy, and what of it shows beside computing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from ilang_eq.extract import overlap
from ilang_eq.extract.footprint import LINE, PAGE, WAITED_FAR, ByBuffer, Room, Traffic, room_of
from ilang_eq.extract.machine import Level, Machine
from ilang_eq.extract.nest_cost import NS, NestCost, Part, Phase, computing
from ilang_eq.extract.regions import Region
from ilang_eq.extract.streams import gained, together
from ilang_eq.extract.tally import Known

BEGINS = 0.9
"""The part of memory's latency that a phase waits as it begins to read a row after another one has read something else.
Decode attention in blocks of 256 keys, which go from keys to values and back 1024 times, takes 1.085 times as long on
Zen 4 as with all keys before all values. Prefetchers that go by the instruction go on where they were: on Zen 5 rows of
1000 floats of two arrays, in three passes, take 1.0 of the time that reading them takes."""
WINDOW = 320.0
"""Instructions that a core looks ahead, for which ``footprint.CROWDS`` holds. On Zen 5, which looks 448 ahead, lines of
which 5 to 10 times as many as there are places for take turns come every 1.9 ns, 0.54 of the second level's latency."""
MUCH = 0.05
"""The part of all that comes out of memory that it reads at least."""
STOPS = 1.4
"""Of so many times as many bytes as prefetchers run on for, none is there in time."""


def lines_in_two(
    cost: NestCost,
    region: Region,
    moves: Sequence[ByBuffer],
    spare: Sequence[float],
    machine: Machine,
    share: float,
) -> NestCost:
    """``cost`` with what it takes to issue that lines of what ``moves`` into the nearest cache are read twice.

    A part of a row lies in a line more, which moves as well (``lines_of``).

    Args:
        spare: nanoseconds of each phase in which nothing is loaded.
    """
    cycles = {
        buffer: machine.split_part_cycles if span.pace.jump else machine.split_cycles
        for buffer, span in region.whole.items()
        if span.split
    }
    phases: list[Phase] = []
    for (issue, *others), found, free in zip(cost.phases, moves, spare, strict=False):
        read = sum(traffic.all / LINE * cycles.get(buffer, 0.0) for buffer, traffic in found.items())
        more = max(0.0, read / machine.clock_ghz * share - machine.split_hides * free)
        phases.append((computing(issue.seconds / NS + more, issue.shares), *others))
    return replace(cost, phases=(*phases, *cost.phases[len(phases) :]))


def moving(
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
    memory = outer is machine.levels[-1]
    shares = overlap.Shares.of(machine, cached=not memory)
    for parts, found, waiting in zip(cost.phases, moves, waits, strict=False):
        moved = Traffic.total(found.values())
        spared, asked = _sooner(found, outer, known, gains)
        unforeseen = _unforeseen(moved, share, outer, machine)
        hides = machine.hides if memory else max(machine.hides, machine.hides_cached)
        hidden = hides * unforeseen
        hidden += waiting * share
        # out of a core's own caches what nobody sees coming takes as long to move as what is foreseen, or asked for
        own = () if outer.shared else found.items()
        bytes_ = moved.bytes + sum([t.apart for buffer, t in own if buffer not in known.panels])
        seconds, awaited = ((transfer(bytes_ - less, share, outer) + hidden) * NS for less in (spared, asked))
        waited = moved.waited * (WAITED_FAR if outer.shared else machine.sums_wait) / machine.window / outer.bandwidth
        issue, *others = parts
        computed = computing(issue.seconds / NS + waited * share, issue.shares)
        followed = transfer(sum([found[name].bytes for name in in_order if name in found]), share, outer) * NS
        part = Part(outer.name, seconds, awaited, outer.shared, machine.early, min(followed, awaited), shares)
        phases.append((computed, *others, part))
        stall += (1.0 - hides) * unforeseen * NS
    # last comes finding positions, which moves nothing
    return replace(cost, phases=(*phases, *cost.phases[len(phases) :]), stall=stall)


def waiting_for_stores(cost: NestCost, rows: Sequence[bool], machine: Machine) -> NestCost:
    """``cost`` without overlap of computing and memory where rows in memory are added to: stores wait for both."""
    memory = machine.levels[-1].name
    hidden = 0.0
    for parts, adds in zip(cost.phases, rows, strict=True):
        moved = next((part.seconds for part in parts if part.name == memory), 0.0)
        hidden += (1.0 - machine.shown) * min(parts[0].seconds, moved) if adds else 0.0
    return replace(cost, stall=cost.stall + hidden)


def running_on(region: Region, moves: Sequence[ByBuffer], machine: Machine) -> list[float]:
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


def foreseen(found: ByBuffer, copied: str) -> ByBuffer:
    """``found``, where rows that are ``copied`` do not come unforeseen."""
    if copied not in found or not found[copied].apart:
        return found
    moved = found[copied]
    return {**found, copied: moved._replace(bytes=moved.bytes + moved.apart, apart=0.0)}


def counted(moves: ByBuffer, written: Mapping[str, float], memory: Level) -> ByBuffer:
    """What ``moves`` to ``memory``, where a byte that is ``written`` counts as so many, not as for all."""
    factors = {name: each / memory.written for name, each in written.items()}
    return {name: moved.times(factors.get(name, 1.0)) for name, moved in moves.items()}


def waits_of(
    region: Region, moves: Sequence[ByBuffer], outer: Level, machine: Machine, written: Mapping[str, float]
) -> list[float]:
    """Nanoseconds that each phase waits for the starts of rows, and of pages of rows that take turns."""
    begins = outer is machine.levels[-1] and not machine.by_instruction
    begun = _begun(region, moves, written) if begins else [0.0] * region.count
    turning = (sum(moved.turning for moved in phase.values()) / PAGE for phase in moves)
    pairs = zip(begun, turning, strict=False)
    return [(BEGINS * times + outer.turns * pages) * outer.latency for times, pages in pairs]


def lost_share(whole: float, level: Level) -> float:
    """The share of the ``whole`` bytes of a program that is gone from ``level`` when it runs again.

    Others use what is shared meanwhile.
    """
    return room_of(level).lost(whole / level.bytes) if level.shared else float(whole > level.bytes)


def transfer(amount: float, share: float, level: Level) -> float:
    """Nanoseconds to move ``amount`` bytes out of ``level``, the busiest thread moving ``share`` of them."""
    alone = amount * share / level.bandwidth
    return max(alone, amount / level.bandwidth_all) if level.shared else alone


def _part(moved: ByBuffer, names: Set[str]) -> float:
    """The part of what is ``moved`` that the buffers ``names`` have."""
    everything = sum([traffic.all for traffic in moved.values()])
    return sum([traffic.all for name, traffic in moved.items() if name in names]) / everything if everything else 0.0


def _begun(region: Region, moves: Sequence[ByBuffer], written: Mapping[str, float]) -> list[float]:
    """How often each phase begins to read what comes out of memory, after others have read something else.

    No oftener than a page comes: where little does, the rest is found in a cache.
    """
    read = [sum(moved.bytes for name, moved in phase.items() if name not in written) for phase in moves]
    begun = region.begun([bytes_ > MUCH * sum(read) for bytes_ in read])
    return [min(times, bytes_ / PAGE) for times, bytes_ in zip(begun, read, strict=True)]


def _sooner(found: ByBuffer, outer: Level, known: Known, gains: bool) -> tuple[float, float]:
    """The bytes not to be counted, as streams come quicker if memory ``gains`` by them, and those asked for ahead."""
    share = float(gained(together(found.values()))) if gains and found else 0.0
    read = sum([traffic.bytes for traffic in found.values() if traffic.streams]) if share else 0.0
    panels = [traffic for buffer, traffic in found.items() if buffer in known.panels]
    loose = read - sum([traffic.bytes for traffic in panels if traffic.streams])
    asked = share * loose + sum([traffic.bytes for traffic in panels])
    return share * read * (1.0 - 1.0 / outer.abreast), asked


def _unforeseen(moved: Traffic, share: float, level: Level, machine: Machine) -> float:
    """Nanoseconds for lines that come unforeseen, so many at a time.

    Nor do prefetchers help lines that contend for few places; a core that looks further ahead waits less for each.
    """
    apart = moved.apart * overlap.exposed(level) * max(LINE / level.bandwidth, level.loaded_latency / machine.in_flight)
    waits = level.latency * min(1.0, WINDOW / machine.window)
    contending = max(moved.contending * LINE / level.bandwidth, moved.crowded * waits)
    return (apart + contending) / LINE * share
