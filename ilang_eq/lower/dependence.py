"""Which loops may run their iterations together: independence and reductions, read off the places they touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang_eq.lower.ir import Accumulate, For, Index, Load, Statement
from ilang_eq.lower.walk import code, declared_in, mentions, places, updates, walk

REDUCTIONS = frozenset({"add", "mul", "max", "min"})
"""The ops whose reductions may be taken apart into lanes and put together again."""


def innermost(loop: For) -> bool:
    """Whether no loop is inside."""
    return not any(isinstance(s, For) for s in loop.body)


def independent(loop: For) -> bool:
    """Whether no iteration touches what another one writes."""
    return not shared(loop)


def reductions(loop: For) -> tuple[Accumulate, ...] | None:
    """What an innermost loop reduces into; None if its iterations depend on each other in any other way."""
    found: list[Accumulate] = []
    for name in shared(loop):
        touching = [place for place in places(loop.body) if place.buffer == name]
        into = [s for s in loop.body if isinstance(s, Accumulate) and s.target.buffer == name]
        if len(touching) != 1 or len(into) != 1 or into[0].op not in REDUCTIONS:
            return None
        if mentions(into[0].target, loop.variable):
            return None
        found += into
    return tuple(found)


def shared(loop: For) -> tuple[str, ...]:
    """The buffers through which iterations may depend on each other."""
    private = set(declared_in(loop.body))
    written = dict.fromkeys(u.target.buffer for u in updates(loop.body) if u.target.buffer not in private)
    reach: dict[str, int | None] = {}
    for inner in walk(loop.body):
        if isinstance(inner, For):
            before = reach.get(inner.variable, 0)
            last = None if inner.limit is None else inner.limit - inner.step
            reach[inner.variable] = None if before is None or last is None else max(before, last)
    return tuple(b for b in written if not _apart([p for p in places(loop.body) if p.buffer == b], loop, reach))


def _apart(touched: Sequence[Load], loop: For, reach: Mapping[str, int | None]) -> bool:
    """Whether one dimension alone keeps the iterations of ``loop`` apart: each covers less than a step of it."""
    for indices in zip(*(place.indices for place in touched), strict=True):
        bases = {frozenset(v for v in index.variables if v not in reach) for index in indices}
        spans = [_span(index, loop.variable, reach) for index in indices]
        if len(bases) == 1 and all(span is not None and span < loop.step for span in spans):
            return True
    return False


def _span(index: Index, variable: str, reach: Mapping[str, int | None]) -> int | None:
    """How far ``index`` gets within one iteration of the loop over ``variable``; None if that is unknown."""
    if index.divisor != 1 or index.variables.count(variable) != 1:
        return None
    ends = [reach[v] for v in index.variables if v in reach]
    return None if None in ends else sum(end for end in ends if end is not None)


def perfect(loop: For) -> tuple[tuple[For, ...], tuple[Statement, ...]]:
    """The loops nested perfectly from ``loop`` inwards, and the body of the last."""
    loops = [loop]
    while len(inside := code(loops[-1].body)) == 1 and isinstance(inside[0], For):
        loops.append(inside[0])
    return tuple(loops), loops[-1].body
