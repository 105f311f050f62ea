"""Passes over rows: loops that go one after another over the same few rows, and what memory could bring meanwhile.

for i: { for j: m = max(m, x[i][j]);  for j: e[j] = exp(x[i][j] - m);  for j: y[i][j] = e[j] / s; }

Only the first pass waits for ``x``, and only the last for ``y``, which is read before it is overwritten; the others
find what they need in a cache. So each pass asks for a share of what comes later: those after the first of the next
``x``, those before the last of ``y``; and the first of the next ``x``, too, if none takes its time. Shares are quarters
of a row, in proportion to the floats that a pass reads and writes; all in one pass would be more than memory can bring
in its time. What a pass of several rows writes as it calls functions comes meanwhile, and quick passes before it do not
ask for that: norms of rows of 1024 and 3136 floats, and their silu, take 0.78 to 0.86 of the time in blocks of 2 to 16
rows on Zen 5; row by row 0.97 to 1.04, so that there they ask.

Passes that only read, and compute little, leave no time for that: each of these asks for all of the next row, or of
what follows in its own, where asking gains anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ilang_eq.lower.dependence import innermost
from ilang_eq.lower.ir import Apply, Buffer, Extent, For, Index, Load, Scalar, Statement
from ilang_eq.lower.walk import mentions, places, updates, walk

SHARES = 4
"""What a row is divided into: a pass goes in strips of at least as many lines."""
FAR = 1 << 19
"""The smallest buffer, in floats, whose rows are asked for: 2 MiB, more than a core's own cache holds."""
LONG = 256
"""The shortest rows, in floats, that are asked for: prefetchers run on from a short one into the next."""
ROOM = 1 << 16
"""The most floats that are asked for at a time: those at hand are to stay in a core's own cache beside them."""
_FUNCTIONS = frozenset({"exp", "ln", "log", "pow", "shift_factor"})
"""Ops that take as long as memory takes for a float."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one pass asks for: ``count`` of the ``SHARES`` of a row, from share ``first`` on.

    Args:
        place: where the first of the rows at hand begins.
        next: the row one iteration further is meant.
        written: it will be overwritten.
        first, count: the shares.
        quick: the passes only read, and compute little.
    """

    place: Load
    next: bool
    written: bool
    first: int
    count: int
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes of the loop ``row`` over rows of ``extent``, each with what it asks for.

    All of them go through the rows at hand in ``parts`` of these, one after another, or some do not.
    """

    row: For
    extent: Extent
    requests: tuple[tuple[Request, ...], ...]
    parts: bool

    @property
    def asked(self) -> tuple[Request, ...]:
        """Everything asked for, once."""
        return tuple({r.place.buffer: r for requests in self.requests for r in requests}.values())


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass: the loop over the rows at hand, if there are several, and those along a row."""

    loop: For
    rows: tuple[For, ...]
    along: tuple[For, ...]

    def operands(self, row: For, buffers: Mapping[str, Buffer]) -> Iterator[Load]:
        """The rows of arguments that it goes through from end to end."""
        for place in places([self.loop]):
            if buffers[place.buffer].role != "local" and self._is_row(place, row):
                yield place

    def _is_row(self, place: Load, row: For) -> bool:
        inside = {loop.variable for loop in (*self.rows, *self.along)}
        *outer, last = place.indices or (Index(()),)
        moving = [index for index in outer if row.variable in index.variables]
        besides = [index for index in outer if index not in moving and inside & set(index.variables)]
        return (
            len(moving) == 1
            and not besides
            and last.divisor == moving[0].divisor == 1
            and set(last.variables) == {loop.variable for loop in self.along}
            and {loop.variable for loop in self.rows} <= set(moving[0].variables)
        )

    @property
    def is_slow(self) -> bool:
        """Whether it calls functions."""
        return calls_functions([self.loop])

    @property
    def accesses(self) -> int:
        """The floats that it reads and writes at each position along a row."""
        innermost = self.along[-1].variable
        return len({place for place in places([self.loop]) if mentions(place, innermost)})


def passes(row: For, buffers: Mapping[str, Buffer], slow: bool = False) -> Passes | None:
    """What the passes of ``row`` ask for; None if its body is anything but passes, or they gain nothing.

    Passes that only read, and compute little, keep up with most prefetchers, who bring more than can be asked for,
    unless they are ``slow`` for something else.
    """
    found = _passes(row)
    computes = calls_functions(row.body)
    requests: list[list[Request]] = [[] for _ in found]
    for user, place in _first_uses(found, row, buffers):
        written = _writes(found[user], place)
        # what is written before the last pass (in_place.py) is asked for until then: the rest of the row, by its writer
        until = user + 1 if written and user < len(found) - 1 else user
        asking = range(int(computes), len(found)) if user == 0 else range(until)
        if written and found[user].rows and found[user].is_slow:
            asking = [n for n in asking if found[n].is_slow]
        first = 0
        for n, count in zip(asking, shares([found[n].accesses for n in asking]), strict=True):
            if count:
                requests[n].append(Request(_start(place, row), user == 0, written, first, count))
            first += count
    slow |= computes or any(request.written for asked in requests for request in asked)
    return _asking(row, found, tuple(map(tuple, requests))) if slow and any(requests) else None


def quick_passes(row: For, buffers: Mapping[str, Buffer]) -> Passes | None:
    """What passes of ``row`` that only read, and compute little, ask for; None if its body is anything else.

    Each asks for all of what comes next: what is dropped, as memory has enough to do, is asked for again.
    """
    found = _passes(row)
    if not found or passes(row, buffers) is not None:
        return None
    first = [place for user, place in _first_uses(found, row, buffers) if user == 0 and not _writes(found[0], place)]
    everything = tuple(Request(_start(place, row), True, False, 0, SHARES, quick=True) for place in first)
    return _asking(row, found, (everything,) * len(found)) if everything else None


def _asking(row: For, found: Sequence[_Pass], requests: tuple[tuple[Request, ...], ...]) -> Passes:
    return Passes(row, found[0].along[0].extent, requests, all(len(one.along) > 1 for one in found))


def _passes(row: For) -> list[_Pass]:
    """The passes that the body of ``row`` consists of; none if it has anything else."""
    loops = [s for s in row.body if isinstance(s, For) and not _over_rows_alone(s, row)]
    found = [one for loop in loops if (one := _pass(loop, row)) is not None]
    extents = {one.along[0].extent for one in found}
    return found if len(found) >= max(2, len(loops)) and len(extents) == 1 else []


def _writes(one: _Pass, place: Load) -> bool:
    return any(update.target.buffer == place.buffer for update in updates([one.loop]))


def worthwhile(sizes: Sequence[int], rows: int) -> bool:
    """Whether ``rows`` rows of a buffer of such ``sizes`` are asked for at a time."""
    return prod(sizes) >= FAR and sizes[-1] >= LONG and rows * sizes[-1] <= ROOM


def calls_functions(body: Sequence[Statement]) -> bool:
    """Whether it computes so much that memory has time to bring more."""
    return any(op in _FUNCTIONS for update in updates(body) for op in _ops(update.value))


def _ops(value: Scalar) -> Iterator[str]:
    if isinstance(value, Apply):
        yield value.op
        for argument in value.arguments:
            yield from _ops(argument)


def _start(place: Load, row: For) -> Load:
    """Where the first of the rows at hand begins, if ``place`` is somewhere in them."""
    tiles = {s.variable for s in walk([row]) if isinstance(s, For) and row.variable in s.outer}
    outer = (replace(i, variables=tuple(v for v in i.variables if v not in tiles)) for i in place.indices[:-1])
    return Load(place.buffer, (*outer, Index(())))


def _over_rows_alone(loop: For, row: For) -> bool:
    """Whether ``loop`` goes over the rows at hand, and does nothing along them."""
    return all(row.variable in s.outer for s in walk([loop]) if isinstance(s, For))


def _pass(loop: For, row: For) -> _Pass | None:
    """``loop`` as a pass: a nest over the rows at hand and all of another axis, but for loops over the former alone."""
    nest = [loop]
    while inside := [s for s in nest[-1].body if isinstance(s, For) and not _over_rows_alone(s, row)]:
        if len(inside) > 1:
            return None
        nest += inside
    rows = tuple(s for s in nest if row.variable in s.outer)
    along = tuple(s for s in nest if row.variable not in s.outer)
    whole = along[0].limit is None and not along[0].outer and len({s.extent for s in along}) == 1
    tile = len(rows) == (row.step > 1) and all(s.limit == row.step and s.step == 1 for s in rows)
    return _Pass(loop, rows, along) if whole and tile and innermost(nest[-1]) else None


def _first_uses(found: Sequence[_Pass], row: For, buffers: Mapping[str, Buffer]) -> list[tuple[int, Load]]:
    """The pass that comes to each operand first, and where."""
    first: dict[str, tuple[int, Load]] = {}
    for n, one in enumerate(found):
        for place in one.operands(row, buffers):
            first.setdefault(place.buffer, (n, place))
    return list(first.values())


def shares(weights: Sequence[int]) -> list[int]:
    """``SHARES`` in proportion to ``weights``, rounded so that they add up."""
    exact = [SHARES * weight / sum(weights) for weight in weights]
    counts = [int(share) for share in exact]
    left = sorted(range(len(weights)), key=lambda n: counts[n] - exact[n])
    for n in left[: SHARES - sum(counts)]:
        counts[n] += 1
    return counts
