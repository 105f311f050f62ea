"""The best tile sizes for a given structure, by the additive model: a few axes at a time, in all combinations.

What a class pays depends on the tiles of its own loops, and on how it finds what it reads. So it is tabulated over
these tiles alone, once for all structures that have it do the same.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ilang_eq.extract.additive import AdditiveModel
from ilang_eq.extract.candidate import Tiles
from ilang_eq.extract.elimination import Choice
from ilang_eq.extract.rows import Costs, Knobs, Rows, SizedRows
from ilang_eq.rewrites.space import AxisId, ClassId, Nest

_GROUP_PRODUCT = 1400
"""Combinations of tile sizes that are tried at once for one structure."""

_TABLED = 4096
"""Combinations of tile sizes over which what one class pays is tabulated at once."""

_SWEEPS = 2


@dataclass(frozen=True)
class Tiling:
    """The choice of tiles for structures of one model.

    Args:
        model: what structures cost.
        sizes: of every axis.
        options: the tile sizes of every axis that some nest has.
        sized: loops under combinations of tiles, for all models of one structure.
    """

    model: AdditiveModel
    sizes: Mapping[AxisId, int]
    options: Mapping[AxisId, tuple[int, ...]]
    sized: dict[Hashable, SizedRows] = field(default_factory=dict)
    _known: dict[Hashable, Costs] = field(default_factory=dict)

    def best(self, choice: Choice, start: Tiles) -> tuple[Tiles, float]:
        """The best tiles for the structure ``choice``, and its cost; axes that it has no loops over keep ``start``."""
        alone = self.model.only(self.model.needed(choice))
        nests = {c: state.nest for c, (state,) in alone.domains.items() if state is not None}
        groups = list(self._groups({axis for nest in nests.values() for axis in nest})) or [()]
        tiles, least = dict(start), math.inf
        for _ in range(_SWEEPS):
            before = least
            for group in groups:
                total = np.zeros([len(self.options[axis]) for axis in group])
                for c, nest in nests.items():
                    vary = self._varied(nest, group, tiles)
                    paid = self._paid(alone, choice, c, vary).reshape([len(found) for found in vary.values()])
                    here = tuple(slice(None) if a in group else found.index(tiles[a]) for a, found in vary.items())
                    total += paid[here].reshape([len(vary[axis]) if axis in vary else 1 for axis in group])
                place = np.unravel_index(int(np.argmin(total)), total.shape)
                tiles |= {axis: self.options[axis][n] for axis, n in zip(group, place, strict=True)}
                least = float(total.min())
            if len(groups) == 1 or least == before:
                break
        return tiles, least

    def _varied(self, nest: Nest, group: Sequence[AxisId], tiles: Tiles) -> dict[AxisId, tuple[int, ...]]:
        """The tiles that a class's table is over: of ``group``, and of all its axes if these combinations are few."""
        few = math.prod(len(self.options[axis]) for axis in nest) <= _TABLED
        return {axis: self.options[axis] if few or axis in group else (tiles[axis],) for axis in sorted(nest)}

    def _paid(self, alone: AdditiveModel, choice: Choice, c: ClassId, vary: Mapping[AxisId, tuple[int, ...]]) -> Costs:
        """What class ``c`` pays in ``alone``, the model of ``choice``, for all combinations of tiles in ``vary``."""
        places = self.model.structure.places
        does = tuple((x, choice[places[x]]) for x in (c, *(x for r, x in alone.sites if r == c)))
        key = (does, tuple(vary.items()))
        if key not in self._known:
            points = math.prod(map(len, vary.values()))
            self._known[key] = alone.paid(c, points, lambda rows: self._under(rows, vary))
        return self._known[key]

    def _under(self, rows: Rows, vary: Mapping[AxisId, Sequence[int]]) -> SizedRows:
        """``rows`` under all combinations of tiles in ``vary``: states differ in more than their loops."""
        key = (rows, tuple(vary.items()))
        found = self.sized.get(key)
        if found is None:
            found = self.sized[key] = rows.at(Knobs(self.sizes, _combinations(vary)), self.model.processor)
        return found

    def _groups(self, used: set[AxisId]) -> Iterator[tuple[AxisId, ...]]:
        """The axes that are ``used``, in groups with few combinations of tile sizes."""
        group: tuple[AxisId, ...] = ()
        for axis in (axis for axis in sorted(self.options) if axis in used):
            if group and math.prod(len(self.options[a]) for a in (*group, axis)) > _GROUP_PRODUCT:
                yield group
                group = ()
            group = (*group, axis)
        if group:
            yield group


def _combinations(options: Mapping[AxisId, Sequence[int]]) -> dict[AxisId, Costs]:
    """Every combination of ``options``, the last axis varying fastest."""
    grid = np.meshgrid(*(np.array(found, dtype=np.float64) for found in options.values()), indexing="ij")
    return {axis: tiles.reshape(-1) for axis, tiles in zip(options, grid, strict=True)}
