"""Which axes mean the same: the tensor dimensions they run over, traced to their origins.

A producer's output axes align with its reader's by position. Its *reduced* axes have no position in the reader; they
align with a loop that runs over the same dimension of the same tensor. The nearest common origin decides, so that a
row axis and a column axis of ``x·xᵀ`` stay apart though both run over the rows of x.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ilang_eq.lang.expr import Access
from ilang_eq.lang.graph import Graph, Source, Value

Origin = tuple[Source, int]


@dataclass(frozen=True)
class Meanings:
    """Origins of every axis of a graph, found on demand."""

    graph: Graph
    _found: dict[tuple[int, str], dict[Origin, int]] = field(default_factory=dict)

    def origins(self, node: int, axis: str) -> dict[Origin, int]:
        """Each (tensor, dimension) that ``axis`` of ``node`` runs over, with its distance in reads."""
        key = (node, axis)
        if key not in self._found:
            self._found[key] = self._trace(node, axis)
        return self._found[key]

    def distance(self, a: tuple[int, str], b: tuple[int, str]) -> int | None:
        """Reads between two (node, axis) pairs and their nearest common origin; None where they share none."""
        first, second = self.origins(*a), self.origins(*b)
        common = [first[o] + second[o] for o in first if o in second]
        return min(common, default=None)

    def _trace(self, node: int, axis: str) -> dict[Origin, int]:
        found: dict[Origin, int] = {}
        queue = deque([(node, axis, 1)])
        while queue:
            n, a, steps = queue.popleft()
            reader = self.graph.nodes[n]
            for operand, source in zip(reader.expr.operands, reader.operands, strict=True):
                if not isinstance(operand, Access):
                    continue
                for dim, name in enumerate(operand.axes):
                    if name != a or (source, dim) in found:
                        continue
                    found[source, dim] = steps
                    if isinstance(source, Value):
                        queue.append((source.node, self.graph.nodes[source.node].expr.output[dim], steps + 1))
        return found
