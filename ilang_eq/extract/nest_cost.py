"""What one outermost loop takes, part by part: parts of a phase overlap, but for a share; phases follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ilang_eq.extract import overlap

ISSUE = "issue"
NS = 1e-9


class Part(NamedTuple):
    """Issuing instructions, or moving data out of a level; ``awaited`` leaves out panels, and rows side by side.

    ``shared`` levels lie beyond the caches of a core; prefetchers run further ahead there than within, unless they are
    ``early`` anywhere. Those that are also see what is ``followed`` from start to end as if it had been asked for: out
    of a core's own caches it hides under computing, and computing under it from beyond.

    A panel, whose short rows of constant length lie one after another, is gone through from start to end: prefetchers
    see it coming, and what comes for the first time is asked for ahead (``c/ahead.py``). Of rows side by side they are
    further ahead than of one: 32 heads' products of 8192 rows take 0.75 and 0.70 of the time two and four heads at a
    time.

    As much as ``shares`` say shows of it where something else takes longer.
    """

    name: str
    seconds: float
    awaited: float
    shared: bool = False
    early: bool = False
    followed: float = 0.0
    shares: overlap.Shares = overlap.USUAL

    def shown(self, longest: Part) -> float:
        """The seconds that show beside ``longest``: fewer where that was asked for.

        And of what was asked for itself, fewer the longer it has to come.
        """
        if not self.seconds:
            return 0.0
        hides = longest.name == ISSUE and not self.shared
        leads = self.name == ISSUE and longest.shared
        awaited = self.awaited - self.followed if hides else self.awaited
        asked = self.seconds - awaited
        ahead = 1.0 - (longest.awaited - longest.followed if leads else longest.awaited) / longest.seconds
        waiting = self.shares.shown - (self.shares.shown - self.shares.asked) * ahead
        if (self.shared or self.early) and longest.name == ISSUE:
            waiting *= min(1.0, overlap.UNDER * self.seconds / longest.seconds)
        waiting *= self.shares.computing if longest.name == ISSUE else 1.0
        return waiting * awaited + self.shares.asked * asked * self.seconds / longest.seconds


Phase = tuple[Part, ...]
"""What overlaps, but for a share."""


@dataclass(frozen=True, slots=True)
class NestCost:
    """Seconds of one outermost statement: phases follow each other, stalls and overhead come on top."""

    phases: tuple[Phase, ...]
    stall: float = 0.0
    overhead: float = 0.0

    @property
    def seconds(self) -> float:
        """All together."""
        return sum(map(_seconds, self.phases)) + self.stall + self.overhead

    def merged(self, asked: bool = True) -> NestCost:
        """The same with all phases at once; what they move is ``asked`` for in time, or too much of it at a time.

        Blocks of rows are asked for in bursts, of more lines than can be under way: log-softmax of rows of 1000 floats
        takes 1.25, 1.3 and 1.6 times as long in blocks of 2, 4 and 8 rows on Zen 5, softmax of 1024 1.1 to 1.3.
        """
        seconds: dict[tuple[str, overlap.Shares], float] = {}
        for part in (part for phase in self.phases for part in phase):
            seconds[part.name, part.shares] = seconds.get((part.name, part.shares), 0.0) + part.seconds
        together = (Part(name, each, 0.0 if asked else each, shares=shares) for (name, shares), each in seconds.items())
        return replace(self, phases=(tuple(together),))

    def running_on(self, name: str, shares: Sequence[float]) -> NestCost:
        """The same with these ``shares`` of what phases move out of ``name`` on their way while others compute."""
        phases = list(self.phases)
        for reader, (parts, share) in enumerate(zip(self.phases, shares, strict=False)):
            moved = next((part for part in parts if part.name == name), None)
            others = [n for n in range(len(phases)) if n != reader and self.phases[n][0].seconds]
            time = sum(self.phases[n][0].seconds for n in others)
            if moved is None or not moved.seconds or not time:
                continue
            hidden = share * min(moved.seconds, time)
            left = 1.0 - hidden / moved.seconds
            rest = moved._replace(seconds=moved.seconds * left, awaited=moved.awaited * left)
            phases[reader] = tuple(rest if part is moved else part for part in phases[reader])
            for n in others:
                part = Part(name, hidden * self.phases[n][0].seconds / time, 0.0, moved.shared)
                phases[n] = (*phases[n], part)
        return replace(self, phases=tuple(phases))


def computing(nanoseconds: float, shares: overlap.Shares = overlap.USUAL) -> Part:
    """Issuing instructions for so long."""
    return Part(ISSUE, nanoseconds * NS, nanoseconds * NS, shares=shares)


def _seconds(phase: Phase) -> float:
    """The slowest part, and what does not overlap with it."""
    longest = max(phase, key=lambda part: part.seconds)
    return longest.seconds + sum(part.shown(longest) for part in phase if part is not longest)
