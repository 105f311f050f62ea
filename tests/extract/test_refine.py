"""The walk over tile sizes by the full model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from ilang_eq.extract import refine
from ilang_eq.extract.candidate import Sized


@dataclass(frozen=True)
class Stand:
    """Stands for a candidate whose walk does not matter."""

    cost: float
    tiles: Mapping[int, int] = field(default_factory=dict)

    @property
    def schedule(self) -> Any:
        return SimpleNamespace(tiles=self.tiles)


def apart(*candidates: Stand) -> list[Stand]:
    return cast("list[Stand]", refine._apart(cast("list[Sized]", list(candidates))))


def test_the_same_tiles_at_nearly_the_same_cost_are_one_candidate() -> None:
    one, same, slower = Stand(1.0, {0: 24}), Stand(1.0001, {0: 24}), Stand(1.1, {0: 24})
    assert apart(one, same, slower) == [one, slower]


def test_other_tiles_are_another_candidate_whatever_they_cost() -> None:
    """What costs the same by chance may lie at the start of a better walk."""
    candidates = Stand(1.0, {0: 24}), Stand(1.0, {0: 48}), Stand(1.0001, {0: 24}), Stand(1.0002, {0: 48})
    assert apart(*candidates) == list(candidates[:2])
