"""Exact min-sum variable elimination, over a grid of cost scenarios at once.

A problem is a set of variables with finite domains and tables of costs over a few of them; a choice gives each
variable a value and costs the sum of its table entries. Eliminating a variable adds up the tables that mention it
and minimises it out, which leaves a *message* over its neighbours (Bertelè and Brioschi 1972; Dechter's bucket
elimination, 1999). Exact; the width of the elimination order decides the price.

Every table carries a last axis, the grid: tile sizes, for us. One pass answers all grid points. A problem that others
depart from by a table over one variable keeps its messages, and of these all hold that no such table reaches.

Invariants:
  * inside, a table's grid comes first, and then its variables in elimination order: so inner loops are long
  * a bucket's tables have the bucket's variable on axis 1 and mention only variables eliminated later besides
  * a kept message is what its bucket leaves of the problem's own tables, at the same grid points
  * with the later variables fixed, moving a bucket's variable changes the optimum by the change in its row
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ilang_eq.errors import OptionError

Costs = NDArray[np.float64]
Choice = tuple[int, ...]

WIDEST = 20_000_000
"""Entries of the largest table held at once (160 MB)."""

_IN_CACHE = 50_000
"""Entries of a table that stays in a cache. A larger one is taken by grid points, and these by values."""

_LOOKS_PER_CHOICE = 500
"""``best_k`` looks at this many choices for each that it was asked for: repeats could go on without end."""


class TooWide(OptionError):
    """The smallest table that elimination needs is over ``WIDEST``; the caller has to cut domains or variables."""


@dataclass(frozen=True, slots=True)
class Table:
    """Costs over the variables ``scope``.

    Args:
        scope: distinct variable numbers.
        values: float64, one axis per variable of ``scope``, then the grid's, of length 1 or G; inf forbids.
    """

    scope: tuple[int, ...]
    values: Costs

    def at(self, points: Sequence[int]) -> Table:
        """The same at some points of the grid."""
        return self if self.values.shape[-1] == 1 else Table(self.scope, self.values[..., points])


@dataclass(frozen=True, slots=True)
class _Bucket:
    """The tables from which ``variable`` was minimised out."""

    variable: int
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class _Problem:
    """Domains, an elimination order, and tables whose scopes follow it, their grids first.

    Args:
        grid, step: points of the grid, and how many are answered at a time.
        more: tables of its own, beside those of the problem that it departs from.
        kept, own: messages by grid points and variable: those that ``more`` does not reach, and the others.
    """

    domains: tuple[int, ...]
    order: tuple[int, ...]
    tables: tuple[Table, ...]
    grid: int
    step: int
    more: tuple[Table, ...] = ()
    kept: dict[tuple[int, int, int], Table] | None = None
    own: dict[tuple[int, int, int], Table] | None = None

    def solved(self) -> Solution:
        """Its optima."""
        starts = range(0, self.grid, self.step)
        pieces = [_costs(self, lo, min(lo + self.step, self.grid)) for lo in starts]
        return Solution(np.concatenate(pieces) if pieces else np.zeros(0), self)


@dataclass(frozen=True, slots=True)
class Solution:
    """The optimum at every grid point: ``costs`` has shape (G,), inf where nothing is allowed."""

    costs: Costs
    problem: _Problem

    def choice(self, point: int) -> Choice:
        """The cheapest value of every variable at grid point ``point``; among equals the first in a fixed order.

        Raises:
            ValueError: nothing is allowed at ``point``.
        """
        if not np.isfinite(self.costs[point]):
            raise ValueError(f"no choice is allowed at grid point {point}")
        buckets, _ = _forward(self.problem, point, point + 1)
        return _complete(buckets, len(buckets), self.problem.domains)

    def departing(self, tables: Sequence[Table]) -> Solution:
        """The optimum with more ``tables``, each over one variable."""
        problem = self.problem
        if any(len(table.scope) != 1 for table in tables):
            raise ValueError("what departs from a problem does so by tables over one variable")
        for table in tables:
            _check(table, problem.domains, problem.grid)
        more = (*problem.more, *(_along(table, problem.order) for table in tables))
        return replace(problem, more=more, own={}).solved()


def eliminate(domains: Sequence[int], tables: Sequence[Table], grid: int, kept: bool = False) -> Solution:
    """Minimise the sum of ``tables`` over all choices, at each of ``grid`` points.

    Args:
        kept: whether messages are kept, for other solutions that depart from this one.

    Raises:
        TooWide: a single grid point needs a table over ``WIDEST``.
        ValueError: a table's shape contradicts ``domains`` or ``grid``.
    """
    for table in tables:
        _check(table, domains, grid)
    order, width = _elimination_order(domains, tables)
    if width > WIDEST:
        raise TooWide(f"elimination needs a table of {width:.1e} entries", expected=f"at most {WIDEST:.0e}")
    step = max(1, _IN_CACHE // max(width, 1))
    along = tuple(_along(t, order) for t in tables)
    return _Problem(tuple(domains), order, along, grid, step, kept={} if kept else None).solved()


def best_k(
    solution: Solution, k: int, distinct: Callable[[Choice], Hashable] | None = None
) -> list[tuple[float, int, Choice]]:
    """The ``k`` cheapest (cost, grid point, choice) of what was solved, cheapest first.

    Lawler's partition (1972), at no further elimination: a bucket's row prices every departure from a choice.
    Of choices that agree in ``distinct`` only the cheapest counts, over all grid points; without it every
    (grid point, choice) counts. Fewer than ``k`` come back when no more exist, or too many repeat.
    """
    found: dict[Hashable, tuple[float, int, Choice]] = {}
    for looked, (point, choice) in enumerate(_cheapest_first(solution)):
        if len(found) == k or looked == k * _LOOKS_PER_CHOICE:
            break
        key = (point, choice) if distinct is None else distinct(choice)
        if key not in found:
            found[key] = (_cost_of(solution.problem, point, choice), point, choice)
    return sorted(found.values())


def width(domains: Sequence[int], tables: Sequence[Table]) -> int:
    """Entries of the largest table that ``eliminate`` needs at one grid point."""
    return _elimination_order(domains, tables)[1]


def _check(table: Table, domains: Sequence[int], grid: int) -> None:
    expected = tuple(domains[v] for v in table.scope)
    shape = table.values.shape
    if shape[:-1] != expected or shape[-1:] not in ((1,), (grid,)) or len(set(table.scope)) != len(table.scope):
        raise ValueError(f"table over {table.scope} has shape {shape}, expected {expected} and 1 or {grid}")


def _elimination_order(domains: Sequence[int], tables: Sequence[Table]) -> tuple[tuple[int, ...], int]:
    """Greedy: next the variable whose joint table is smallest, the first of equals; and the largest such table."""
    near: dict[int, set[int]] = {v: set() for v in range(len(domains))}
    for table in tables:
        for v in table.scope:
            near[v].update(table.scope)
            near[v].discard(v)

    def joint(v: int) -> int:
        return domains[v] * math.prod(domains[n] for n in near[v])

    sizes = {v: joint(v) for v in near}
    order: list[int] = []
    width = 1
    while sizes:
        v = min(sizes, key=lambda u: (sizes[u], u))
        width = max(width, sizes.pop(v))
        order.append(v)
        neighbours = near.pop(v)
        for n in neighbours:
            near[n] |= neighbours
            near[n] -= {n, v}
        for n in neighbours:
            sizes[n] = joint(n)
    return tuple(order), width


def _along(table: Table, order: tuple[int, ...]) -> Table:
    """``table`` with the grid first and then its axes in elimination order: the next to go is always axis 1."""
    place = {v: n for n, v in enumerate(order)}
    axes = sorted(range(len(table.scope)), key=lambda n: place[table.scope[n]])
    values = np.asarray(table.values, dtype=np.float64).transpose([len(axes), *axes])
    return Table(tuple(table.scope[n] for n in axes), np.ascontiguousarray(values))


def _costs(problem: _Problem, lo: int, hi: int) -> Costs:
    """Optima at grid points lo to hi."""
    _, constant = _forward(problem, lo, hi)
    return np.broadcast_to(constant, (hi - lo,))


def _forward(problem: _Problem, lo: int, hi: int) -> tuple[tuple[_Bucket, ...], Costs]:
    """Eliminate every variable in order at grid points lo to hi; the buckets, and the sum of what is left."""
    waiting: dict[int, list[Table]] = {v: [] for v in problem.order}
    constant: Costs = np.zeros(1)
    for table in (*problem.tables, *problem.more):
        values = table.values if len(table.values) == 1 else table.values[lo:hi]
        if table.scope:
            waiting[table.scope[0]].append(Table(table.scope, values))
        else:
            constant = constant + values
    buckets: list[_Bucket] = []
    place = {v: n for n, v in enumerate(problem.order)}
    reached = {table.scope[0] for table in problem.more}
    for v in problem.order:
        buckets.append(_Bucket(v, tuple(waiting[v])))
        messages = problem.own if v in reached else problem.kept
        message = None if messages is None else messages.get((lo, hi, v))
        if message is None:
            message = _message(buckets[-1], problem.domains, place)
            if messages is not None:
                messages[lo, hi, v] = message
        if message.scope:
            waiting[message.scope[0]].append(message)
            reached |= {message.scope[0]} if v in reached else set()
        else:
            constant = constant + message.values
    return tuple(buckets), constant


def _message(bucket: _Bucket, domains: tuple[int, ...], place: dict[int, int]) -> Table:
    """What is left of ``bucket`` once its variable is minimised out."""
    if not domains[bucket.variable]:
        return Table((), np.full(1, np.inf))
    if not bucket.tables:
        return Table((), np.zeros(1))
    scope = tuple(sorted({v for t in bucket.tables for v in t.scope}, key=place.__getitem__))
    alike: dict[tuple[int, ...], list[Costs]] = {}
    for table in bucket.tables:
        alike.setdefault(table.scope, []).append(table.values)
    sums = (Table(same, reduce(np.add, values)) for same, values in alike.items())
    parts = [_broadcast(t, scope) for t in sorted(sums, key=lambda t: t.values.size)]
    if math.prod(np.broadcast_shapes(*(part.shape for part in parts))) < _IN_CACHE:
        return Table(scope[1:], np.min(reduce(np.add, parts), axis=1))
    values = (reduce(np.add, (part[:, n] for part in parts)) for n in range(domains[bucket.variable]))
    return Table(scope[1:], reduce(np.minimum, values))


def _broadcast(table: Table, scope: tuple[int, ...]) -> Costs:
    """``table`` over the wider ``scope``, in the same order, with axes of length 1 where it does not care."""
    grid, *shape = table.values.shape
    lengths = dict(zip(table.scope, shape, strict=True))
    return table.values.reshape(grid, *(lengths.get(v, 1) for v in scope))


def _row(bucket: _Bucket, domain: int, choice: Sequence[int]) -> Costs:
    """Cost of each value of the bucket's variable, later ones as in ``choice``."""
    rows = (t.values[(0, slice(None), *(choice[v] for v in t.scope[1:]))] for t in bucket.tables)
    return reduce(np.add, rows, np.zeros(domain))


def _complete(
    buckets: tuple[_Bucket, ...], depth: int, domains: tuple[int, ...], partial: Sequence[int] | None = None
) -> Choice:
    """The cheapest choice that agrees with ``partial`` on the variables of ``buckets[depth:]``."""
    choice = list(partial or [0] * len(domains))
    for bucket in reversed(buckets[:depth]):
        choice[bucket.variable] = int(np.argmin(_row(bucket, domains[bucket.variable], choice)))
    return tuple(choice)


def _cost_of(problem: _Problem, point: int, choice: Choice) -> float:
    """The sum of the table entries that ``choice`` picks."""
    tables = (*problem.tables, *problem.more)
    return math.fsum(float(t.values[(point % len(t.values), *(choice[v] for v in t.scope))]) for t in tables)


@dataclass(frozen=True, slots=True, order=True)
class _Part:
    """Choices not yet seen: as ``best`` on ``buckets[depth:]``, none of the ``barred`` values at ``depth - 1``.

    ``best`` is the cheapest of them and costs ``cost``. The whole of a grid point has no ``best`` yet.
    """

    cost: float
    point: int
    best: Choice
    depth: int
    barred: frozenset[int]


def _cheapest_first(solution: Solution) -> Iterator[tuple[int, Choice]]:
    """Every allowed (grid point, choice), by rising cost."""
    problem = solution.problem
    buckets: dict[int, tuple[_Bucket, ...]] = {}
    heap = [_Part(float(c), g, (), 0, frozenset()) for g, c in enumerate(solution.costs) if np.isfinite(c)]
    heapq.heapify(heap)
    while heap:
        part = heapq.heappop(heap)
        if part.point not in buckets:
            buckets[part.point], _ = _forward(problem, part.point, part.point + 1)
            whole = _complete(buckets[part.point], len(problem.order), problem.domains)
            part = _Part(part.cost, part.point, whole, len(problem.order), frozenset())
        yield part.point, part.best
        for rest in _partition(part, buckets[part.point], problem.domains):
            heapq.heappush(heap, rest)


def _partition(part: _Part, buckets: tuple[_Bucket, ...], domains: tuple[int, ...]) -> Iterator[_Part]:
    """``part`` without its best choice, as disjoint parts: departures at each variable that is still free."""
    for depth in range(part.depth, 0, -1):
        bucket = buckets[depth - 1]
        chosen = part.best[bucket.variable]
        barred = (part.barred if depth == part.depth else frozenset()) | {chosen}
        allowed = [n for n in range(domains[bucket.variable]) if n not in barred]
        if not allowed:
            continue
        row = _row(bucket, domains[bucket.variable], part.best)
        other = min(allowed, key=row.__getitem__)
        extra = float(row[other] - row[chosen])
        if math.isfinite(extra):
            departure = list(part.best)
            departure[bucket.variable] = other
            best = _complete(buckets, depth - 1, domains, departure)
            yield _Part(part.cost + extra, part.point, best, depth, barred)
