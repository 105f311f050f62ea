"""Which loops over the rows of a register tile stay loops: generated code and the cost model go by it."""

from __future__ import annotations

from collections.abc import Sequence

from ilang_eq.lower.ir import Accumulate, Statement
from ilang_eq.lower.passes import calls_functions
from ilang_eq.lower.widths import MOST_CALLS, MOST_IN_ROW, MOST_SUMS, MOST_VECTORS


def most_vectors(body: Sequence[Statement], reduced: bool = False) -> int:
    """The vectors of a nest up to which it is unrolled; its lanes may be ``reduced``."""
    if calls_functions(body):
        return MOST_CALLS
    return MOST_SUMS if not reduced and any(isinstance(s, Accumulate) for s in body) else MOST_VECTORS


def staying(limits: Sequence[int], lanes: int, body: Sequence[Statement]) -> int:
    """How many loops, from the outside in, stay loops of a nest around ``body`` that has too many vectors in all."""
    *rows, width = limits
    vectors = width / lanes
    while rows and not calls_functions(body) and vectors * rows[-1] <= MOST_IN_ROW:
        vectors *= rows.pop()
    return len(rows)
