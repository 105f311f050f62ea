"""Rows of a tile whose results wait for each other go through the stages of their nest a few at a time.

before →  for i < 24: { a = exp(x[i]);  b = 2 / (a + 1);  y[i] = exp(b) }              x[i] of three vectors
after  →  for i < 24 by 4: { for i' < 4: a = exp(x[i+i']);  for i' < 4: b = ...;  for i' < 4: y[i+i'] = exp(b) }

Where functions of many steps are applied to each other's results, each has a pass over the vectors of a row to itself
(``stages.py``). A row of a tile has too few of them for that: a core comes to the next row before the first results are
there, and has no place to keep more instructions waiting. On Zen 5 attention with soft-cap takes 0.98 of the time.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Loop, VectorNest
from ilang_eq.c.stages import in_passes
from ilang_eq.lower.groups import MOST_IN_LOOPS
from ilang_eq.lower.ir import For
from ilang_eq.lower.walk import loads, mentions, replace_in_body, updates

MOST = 12
"""Vectors that go through a stage one after another, at most. Of 6, 9, 12, 18 and 24, soft-cap takes 1.01, 0.975, 0.98,
0.98 and 1.01 of the time that it takes with rows of three by themselves."""


def in_bands(loop: Loop, layout: Layout, foreseen: Set[str]) -> Loop:
    """``loop`` over a few rows at a time, if it goes over whole rows of a tile in several passes; else itself.

    Nothing else may ask for what they read, as long as it is not ``foreseen``: that goes row by row.
    """
    match loop:
        case Loop(For(step=1, limit=int(limit)) as rows, (VectorNest((lane,)) as nest,), True) if not nest.partial:
            vectors = max(1, (lane.limit or 0) // nest.lanes)
        case _:
            return loop
    heights = range(MOST // vectors, MOST_IN_LOOPS // vectors, -1)
    height = next((n for n in heights if limit % n == 0), 1)
    if height == 1 or not in_passes(nest) or not _is_near(nest, rows, layout, foreseen):
        return loop
    band = f"{rows.variable}_row"
    body = replace_in_body(nest.body, rows.variable, (rows.variable, band))
    row = For(band, rows.extent, 1, height, (*rows.outer, rows.variable), (replace(lane, body=body),))
    rows = replace(rows, step=height, body=(row,))
    return replace(loop, source=rows, body=(replace(nest, loops=(row, lane), body=body),))


def _is_near(nest: VectorNest, rows: For, layout: Layout, foreseen: Set[str]) -> bool:
    """Whether all that moves with ``rows`` is in a core's own caches, or asked for in time."""
    read = [load for update in updates(nest.body) for load in loads(update.value) if mentions(load, rows.variable)]
    far = {load.buffer for load in read if layout.storage.get(load.buffer) in ("argument", "shared")}
    return far <= foreseen
