"""Pointers to the rows that a register tile ends up in.

before →  tile ← 0;  for k: ...;  out[(i + i') * n + j + j'] = tile[i'][j']
after  →  rows[i'] = &out[(i + i') * n + j];  tile ← 0;  for k: ...;  rows[i'][j'] = tile[i'][j']

Rows of a run-time length are at addresses that go on from tile to tile, and GCC keeps one on the stack for each vector
of a tile: some two hundred instructions between tiles of 6×64, while no sum is at hand. Where it has to expect that
each tile changes those of its rows, it works out just these: 2048×64×2048 takes 0.95 to 0.97 of the time on Emerald
Rapids, products of long sums as much as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Node, Registers, Seldom, VectorNest
from ilang_eq.c.vectors import unrolled
from ilang_eq.lower.addresses import flat_index, index_text
from ilang_eq.lower.ir import Assign, For, Load
from ilang_eq.lower.walk import mentions, stride, substituted


@dataclass(frozen=True, slots=True)
class TargetRows:
    """The rows of ``target`` that the loops ``rows`` go over, along each of which a whole register tile is stored."""

    target: Load
    rows: tuple[For, ...]
    lane: str

    @property
    def _name(self) -> str:
        return f"{self.target.buffer}_rows"

    @property
    def _pointer(self) -> str:
        return self._name + "".join(f"[{loop.variable}]" for loop in self.rows)

    @property
    def _start(self) -> Load:
        return substituted(self.target, self.lane, ())

    def before(self, layout: Layout) -> list[str]:
        """What each block of the tile begins with."""
        pointers = f"float *{self._name}" + "".join(f"[{loop.limit}]" for loop in self.rows) + ";"
        each = [f"{self._pointer} = &{layout.element(self._start)};", f"HIDE({self._pointer});"]
        return [pointers, *unrolled(self.rows, 1, each)]

    def replaced(self, line: str, layout: Layout) -> str:
        """``line`` with elements of these rows, or room for them, found by their pointers."""
        first = flat_index(
            [index_text(index) for index in self._start.indices], layout.buffers[self.target.buffer].dims
        )
        line = line.replace(f"make_room({self.target.buffer}, {first},", f"make_room({self._pointer}, 0,")
        return line.replace(layout.element(self.target), f"{self._pointer}[{self.lane}]")


def target_rows(node: Registers, layout: Layout) -> tuple[TargetRows, ...]:
    """Of what the whole tiles of ``node`` end up in, where how far rows are apart is known at run time only.

    Where sums go in blocks, that is. Others may come back to the same rows after a few steps: second products of
    attention in steps of 24 take 1.015 of the time with pointers, SwiGLU in steps of 32 1.02.
    """
    return () if node.partial or node.blocks is None else tuple(dict.fromkeys(_stored(node.body, layout)))


def _stored(nodes: Sequence[Node], layout: Layout) -> Iterator[TargetRows]:
    for node in nodes:
        match node:
            case Seldom(body=body, otherwise=otherwise):
                yield from _stored((*body, *otherwise), layout)
            case VectorNest((*rows, lane), body=(Assign(target, Load()),)) if not node.rolled:
                if _apart(target, rows, lane, layout):
                    yield TargetRows(target, tuple(rows), lane.variable)
            case _:
                pass


def _apart(target: Load, rows: Sequence[For], lane: For, layout: Layout) -> bool:
    """Whether ``rows`` of ``target``, along each of which ``lane`` goes, lie apart by what is not known before."""
    if layout.storage.get(target.buffer, "stack") in ("stack", "scalar") or stride(target, lane.variable) != "unit":
        return False
    moving = [loop.variable for loop in rows if mentions(target, loop.variable)]
    return not all(layout.is_known_step(target, row) for row in moving)
