"""The loops around a statement, and how often a term inside them is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil
from operator import mul

from ilang_eq.extract.trips import Loop, Node
from ilang_eq.lower.ir import Index, Load

Mask = int
"""A set of loops: bit n is the loop n from the outside."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Loops from the outside in.

    Those from ``unrolled`` on are one unit, a vector loop or an unrolled nest. Loop n runs ``trips[n]`` times each time
    it is reached; ``reached[n]`` is how often that is in all, with ``reached[0]`` = 1 outside them all. Units beside
    this one, in the body of the same loop, hold their accumulators in ``beside`` vectors. Bodies of loops from
    ``perfect`` on have nothing else in them. ``bits`` has each loop by its variable.
    """

    loops: tuple[Loop, ...] = ()
    unrolled: int = 0
    trips: tuple[float, ...] = ()
    reached: tuple[float, ...] = (1.0,)
    beside: float = 0.0
    perfect: int = 0
    bits: Mapping[str, Mask] = field(default_factory=dict)

    def enter(self, *loops: Loop, beside: float | None = None) -> Stack:
        """``loops`` inside these, as the new unit; ``beside`` is as here if None."""
        outside = len(self.loops)
        trips = tuple(loop.trips for loop in loops)
        reached = (*self.reached[:-1], *_reached(self.reached[-1], trips))
        bits = {loop.variable: 1 << n for n, loop in enumerate(loops, start=outside)}
        beside = self.beside if beside is None else beside
        trips = (*self.trips, *trips)
        return Stack((*self.loops, *loops), outside, trips, reached, beside, self.perfect, {**self.bits, **bits})

    def before(self, nodes: Sequence[Node]) -> Stack:
        """The same as what stands around ``nodes``."""
        if len(nodes) == 1:
            return self
        perfect = len(self.loops)
        return Stack(self.loops, self.unrolled, self.trips, self.reached, self.beside, perfect, self.bits)

    def innermost_runs(self, trips: float) -> Stack:
        """The same with another number of trips in the innermost loop, which is the unit."""
        return self._running(len(self.loops) - 1, (trips,))

    def padded(self, lanes: int, shortened: bool = False) -> Stack:
        """The same with every loop of the unit at its full width, and the innermost one at whole vectors of ``lanes``.

        Args:
            shortened: whether there is code for fewer of them.
        """
        pairs = zip(self.unit, self.trips[self.unrolled :], strict=True)
        *outer, last = (t if loop.width is None else loop.width for loop, t in pairs)
        return self._running(
            self.unrolled, (*outer, self.unit[-1].covered if shortened else ceil(last / lanes) * lanes)
        )

    def _running(self, unrolled: int, trips: tuple[float, ...]) -> Stack:
        """The same with the loops from ``unrolled`` on as the unit, with other ``trips``."""
        reached = (*self.reached[:unrolled], *_reached(self.reached[unrolled], trips))
        trips = (*self.trips[:unrolled], *trips)
        return Stack(self.loops, unrolled, trips, reached, self.beside, self.perfect, self.bits)

    @property
    def unit(self) -> tuple[Loop, ...]:
        """The innermost loops that go as one."""
        return self.loops[self.unrolled :]

    @property
    def iterations(self) -> float:
        """How often the innermost body is reached."""
        return self.reached[-1]

    @property
    def entered(self) -> float:
        """How often the unit is reached."""
        return self.reached[self.unrolled]

    @property
    def innermost(self) -> Mask:
        """The innermost loop's bit; none if it is outside the unit."""
        return 1 << (len(self.loops) - 1) if len(self.loops) > self.unrolled else 0

    @property
    def all(self) -> Mask:
        """Every loop."""
        return (1 << len(self.loops)) - 1

    @property
    def tiles(self) -> float:
        """How often the unit is reached together with the loops of constant length right around it."""
        first = self.unrolled
        while first and self.loops[first - 1].width is not None:
            first -= 1
        return self.reached[first]

    def mask(self, place: Load) -> Mask:
        """The loops that ``place`` moves with."""
        return self._moving(place.indices)

    def rows(self, place: Load) -> Mask:
        """The loops that move ``place`` from row to row: along the last dimension one pointer reaches everything."""
        return self._moving(place.indices[:-1])

    def _moving(self, indices: Sequence[Index]) -> Mask:
        found = 0
        for index in indices:
            for variable in index.variables:
                found |= self.bits.get(variable, 0)
        return found

    def executions(self, mask: Mask) -> float:
        """How often a term that moves with ``mask`` is computed: never twice in one iteration of the unit."""
        within = self.copies(mask)
        return within * (self.entered if mask >> self.unrolled else self.reached[mask.bit_length()])

    def held(self, mask: Mask) -> float:
        """How often a term that moves with ``mask`` comes into registers, where it stays until it moves."""
        outside = mask & ((1 << self.unrolled) - 1)
        return self.copies(mask) * self.reached[outside.bit_length()]

    def accumulated(self, mask: Mask) -> float:
        """How often an accumulator that moves with ``mask`` comes into registers: it stays through a perfect nest."""
        outside = mask & ((1 << self.unrolled) - 1)
        return self.copies(mask) * self.reached[max(outside.bit_length(), self.perfect)]

    def copies(self, mask: Mask) -> float:
        """How many values a term that moves with ``mask`` takes within the unit."""
        found = 1.0
        for n in range(self.unrolled, len(self.loops)):
            if mask >> n & 1:
                found *= self.trips[n]
        return found


def _reached(outside: float, trips: tuple[float, ...]) -> Iterator[float]:
    """How often loops that are ``outside`` times reached, and run ``trips`` times, reach each other, and their body."""
    return accumulate(trips, mul, initial=outside)
