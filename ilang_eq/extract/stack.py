"""The loops around a statement, and how often a term inside them is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ilang_eq.extract.trips import Loop
from ilang_eq.lower.ir import Index, Load

Mask = int
"""A set of loops: bit n is the loop n from the outside."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Loops from the outside in.

    Those from ``unrolled`` on are one unit, a vector loop or an unrolled nest; ``reached[n]`` is how often loop n's
    body is reached in all, with ``reached[0]`` = 1 outside them all. Units beside this one, in the body of the same
    loop, hold their accumulators in ``beside`` vectors. ``bits`` has each loop by its variable.
    """

    loops: tuple[Loop, ...] = ()
    unrolled: int = 0
    reached: tuple[float, ...] = (1.0,)
    beside: float = 0.0
    bits: Mapping[str, Mask] = field(default_factory=dict)

    def enter(self, *loops: Loop) -> Stack:
        """``loops`` inside these, as the new unit."""
        reached = list(self.reached)
        for loop in loops:
            reached.append(reached[-1] * loop.trips)
        bits = {loop.variable: 1 << n for n, loop in enumerate(loops, start=len(self.loops))}
        return Stack((*self.loops, *loops), len(self.loops), tuple(reached), self.beside, {**self.bits, **bits})

    def innermost_runs(self, trips: float) -> Stack:
        """The same with another number of trips in the innermost loop."""
        *outer, last = self.loops
        around = Stack(tuple(outer), len(outer), self.reached[:-1], self.beside, self.bits)
        return around.enter(replace(last, trips=trips))

    def padded(self) -> Stack:
        """The same with every loop of the unit at its full width."""
        unit = (replace(loop, trips=loop.trips if loop.width is None else loop.width) for loop in self.unit)
        outside, reached = self.loops[: self.unrolled], self.reached[: self.unrolled + 1]
        return Stack(outside, 0, reached, self.beside, self.bits).enter(*unit)

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

    def copies(self, mask: Mask) -> float:
        """How many values a term that moves with ``mask`` takes within the unit."""
        found = 1.0
        for n in range(self.unrolled, len(self.loops)):
            if mask >> n & 1:
                found *= self.loops[n].trips
        return found
