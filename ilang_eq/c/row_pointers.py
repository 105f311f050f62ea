"""Pointers to the rows that a register tile takes elements from.

before →  for k: (unrolled) tile[i'][j'] += a[(i + i') * n + k] * b[k][j']
after  →  row0 = &a[i * n]; row1 = &a[(i + 1) * n]; ...  for k: (unrolled) tile[i'][j'] += row{i'}[k] * b[k][j']

Each row of a run-time length has an address of its own. In kernels of several nests GCC holds those of six rows on the
stack and loads them in every step, which takes up to 1.2 of the time of a product; where it has to expect that each
step changes them, they stay in registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Loop, VectorNest
from ilang_eq.lower.ir import For, Index, Load
from ilang_eq.lower.walk import loads, updates

MOST_ROWS = 6
"""More do not fit the registers beside the other operand, the loop, and what is asked for ahead."""


@dataclass(frozen=True, slots=True)
class RowPointers:
    """Pointers to the rows of ``place`` that the loop ``rows`` goes over, each read ``along`` a loop around it."""

    place: Load
    rows: For
    along: str
    name: str

    @property
    def _names(self) -> list[str]:
        return [f"{self.name}{row}" for row in range(self.rows.limit or 0)]

    def before(self, layout: Layout) -> list[str]:
        """What stands before the loop."""
        *outer, last = self.place.indices
        start = Index(tuple(v for v in last.variables if v != self.along))
        first = layout.element(Load(self.place.buffer, (*outer, start)))
        row = re.compile(rf"\b{self.rows.variable}\b")
        return [f"const float *{name} = &{row.sub(str(n), first)};" for n, name in enumerate(self._names)]

    def inside(self) -> list[str]:
        """What each step begins with."""
        return [f"HIDE({name});" for name in self._names]

    def replaced(self, line: str, layout: Layout) -> str:
        """``line`` of the loop with these rows read by their pointers."""
        *others, pointer = self._names
        for n, name in reversed(list(enumerate(others))):
            pointer = f"{self.rows.variable} == {n} ? {name} : {pointer}"
        return line.replace(layout.element(self.place), f"({pointer})[{self.along}]")


def row_pointers(node: Loop, layout: Layout) -> tuple[RowPointers, ...]:
    """Of the rows that a whole register tile in ``node`` takes single elements from, going along them."""
    nests = [nest for nest in node.body if isinstance(nest, VectorNest)]
    if node.part != "whole" or node.source.step != 1 or len(nests) != 1:
        return ()
    if nests[0].partial or nests[0].reduced or nests[0].rolled:
        return ()
    along, body = node.source.variable, nests[0].body
    found = dict.fromkeys(place for update in updates(body) for place in loads(update.value))
    rows = [(place, loop) for place in found for loop in _rows_of(place, nests[0], along, layout)]
    return tuple(
        RowPointers(place, loop, along, f"{place.buffer}_row{'_' * n}") for n, (place, loop) in enumerate(rows)
    )


def _rows_of(place: Load, nest: VectorNest, along: str, layout: Layout) -> Iterator[For]:
    """The loop of ``nest`` over the rows of ``place``, if they are few, and how far apart is known at run time only."""
    if not place.indices or layout.storage.get(place.buffer, "stack") in ("stack", "scalar"):
        return
    *outer, last = place.indices
    moving = [loop for loop in nest.loops for index in place.indices if loop.variable in index.variables]
    if len(moving) != 1 or moving[0].variable in last.variables or not 2 < (moving[0].limit or 0) <= MOST_ROWS:
        return
    straight = all(index.divisor == 1 for index in place.indices)
    once = last.variables.count(along) == 1 and not any(along in index.variables for index in outer)
    if straight and once and not layout.is_known_step(place, moving[0].variable):
        yield moving[0]
