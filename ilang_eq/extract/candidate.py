"""What the search hands on: schedules of a component, with tile sizes that can still be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ilang_eq.extract.assemble import Schedule, assemble
from ilang_eq.extract.blocking import blocked
from ilang_eq.extract.constants import laid_out, taken_out
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.states import State
from ilang_eq.extract.structure import Structure
from ilang_eq.lang.graph import Graph
from ilang_eq.rewrites.space import AxisId, ClassId

Tiles = dict[AxisId, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule of the component.

    Args:
        graph: the scheduled expressions.
        cost: seconds, by the model that was asked last.
        tiles: the tile size of every axis that has a tile loop.
        unusual: whether only a thorough search finds it.
    """

    graph: Graph
    cost: float
    tiles: Mapping[AxisId, int]
    unusual: bool = False


@dataclass(frozen=True)
class Sized:
    """A choice of structure with tile sizes; ``graph`` says it in expressions.

    ``panels`` are the copies that are made whole, and lie as their reader goes through them.
    """

    structure: Structure = field(repr=False)
    machine: Machine = field(repr=False)
    schedule: Schedule
    cost: float
    graph: Graph = field(repr=False)
    panels: frozenset[ClassId] = frozenset()

    @staticmethod
    def of(
        structure: Structure,
        machine: Machine,
        schedule: Schedule,
        cost: float,
        panels: frozenset[ClassId] = frozenset(),
    ) -> Sized:
        """``schedule``, which has a tile size for every axis that some nest has, in register blocks of ``machine``.

        Constants are panels, whatever the ``panels``.
        """
        panels |= structure.panels
        cut = laid_out(structure, blocked(structure, taken_out(structure, schedule), machine), panels)
        return Sized(structure, machine, cut, cost, assemble(structure, cut), panels)

    def retiled(self, tiles: Tiles) -> Sized:
        """The same structure with other tiles, at the same cost until someone knows better."""
        return Sized.of(self.structure, self.machine, replace(self.schedule, tiles=tiles), self.cost, self.panels)

    def in_panels(self) -> Sized:
        """The same with all copies that are made whole as panels."""
        whole = {c for c, state in self.schedule.states.items() if state.site == 0} & self.structure.copies
        if whole <= self.panels:
            return self
        return Sized.of(self.structure, self.machine, self.schedule, self.cost, self.panels | whole)

    def around_panels(self) -> list[tuple[AxisId, AxisId]]:
        """The two loops right around where each panel is copied, if nothing stands between them."""
        sites = {x: site for (_, x), site in self.schedule.sites.items() if x in self.structure.copies and site > 1}
        nests = {x: self.schedule.states[x].nest for x in sites}
        pairs = {(nests[x][site - 2], nests[x][site - 1]): site - 1 for x, site in sites.items()}
        return [pair for pair, between in pairs.items() if between not in self.schedule.sites.values()]

    def exchanged(self, outer: AxisId, inner: AxisId) -> Sized:
        """The same with the tile loop ``inner`` around ``outer``, wherever it was just inside."""
        states = {c: _exchanged(state, outer, inner) for c, state in self.schedule.states.items()}
        changed = replace(self.schedule, states=states)
        return Sized.of(self.structure, self.machine, changed, self.cost, self.panels)

    def candidate(self, unusual: bool = False) -> Candidate:
        """Without the structure."""
        return Candidate(self.graph, self.cost, self.schedule.tiles, unusual)


def _exchanged(state: State, outer: AxisId, inner: AxisId) -> State:
    nest = state.nest
    for n in range(1, len(nest)):
        if nest[n - 1 : n + 1] == (outer, inner):
            return replace(state, nest=(*nest[: n - 1], inner, outer, *nest[n + 1 :]))
    return state
