"""``optimize``: a component in, the same function as a scheduled component out. The pipeline is ``improving``."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ilang_eq.database.tolerant import Results, results_at
from ilang_eq.errors import ILangError
from ilang_eq.garbage import seldom_collected
from ilang_eq.kept import found_in, key_of, recalled, record_of
from ilang_eq.lang.batching import Element, set_aside
from ilang_eq.lang.component import Component
from ilang_eq.lang.shapes import Dimension
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire
from ilang_eq.optimized import Found, Optimized, Report, Schedule
from ilang_eq.request import Request, checked_request
from ilang_eq.rewrites.rules import RuleSet

if TYPE_CHECKING:
    from ilang_eq.database.record import Key
    from ilang_eq.extract.candidate import Candidate
    from ilang_eq.extract.models import Models
    from ilang_eq.lower.ir import Scalar
    from ilang_eq.rewrites.space import Space

PROPOSALS = 8
"""How many structures the additive model hands on to the full model."""

SHORT_S = 30.0
"""A budget below which every component is searched in small pieces first."""

NEXT_TO_SAME = 1.03
"""Costs that differ by less say nothing: at two threads of a Zen 4, attention takes 6.9 ms with what costs 2.4 % less
than what takes 5.7 and stores little."""

THE_SAME = 1.005
"""Costs that differ by no more say nothing, and the simplest is taken: log-softmax of rows of 1000 one by one takes
0.8 of the time of four rows in tiles, to which the model gives a thousandth less. Of 55 picks that this made simpler,
the mean takes 0.99 of the time on Zen 3."""

DOUBTFUL = 1.08
"""Costs that differ by less may be the other way round where caches have to keep what is stored: eight heads of
attention take 21.0 ms with what costs 1.6 % more than what stores seven times as much, and takes 22.1."""

AS_LITTLE = 4.0
"""Intermediate results that differ by less than this factor count as the same."""

MOST_AXES = 4
"""Components with more axes are searched without their batch axes, which become the outermost loops."""


def optimize(
    component: Component,
    shapes: Sequence[tuple[int, ...]] | None = None,
    *,
    target: str = "c",
    threads: int | None = None,
    effort: str = "model",
    budget_s: float | None = None,
    rules: RuleSet | str = "default",
    seed: int = 0,
    database: str | Path | Literal[False] | None = None,
    constants: Iterable[str] = (),
    precision: str = "float32",
) -> Optimized:
    """Search equal computations and legal schedules of ``component`` for the fastest.

    A result found before, for the same extents, comes from the database. Ctrl-C stops the search, which settles for
    the best found so far: in the worst case, for the component without a schedule.

    Args:
        component: what to compute; if it is scheduled, its schedule competes with those found.
        shapes: of the inputs, to optimise for; ``NOMINAL_EXTENT`` everywhere if None.
        target: the backend the kernel is for.
        threads: threads the kernel may use; all cores if None.
        effort: "model" trusts the cost model; "measure" compiles the best few and times them.
        budget_s: seconds after which the search settles for the best found so far. It runs in a process of its own
            then, which takes about a second of them to start; without a budget it runs in this one.
        rules: the name of a rule set, or a ``RuleSet``.
        seed: of the search's random starts, and of the random inputs that "measure" times with.
        database: the file that keeps results; None for ``$ILANG_EQ_DATABASE`` or the user's, False for none. One that
            cannot be used is warned of, once, and done without.
        constants: inputs that stay the same from call to call, such as weights: ``("in1",)``. What depends on them
            alone is computed once, by ``prepare``, and costs nothing here.
        precision: what the factors of summed products may be rounded to, so that tensor cores can take them: "tf32" for
            10 bits after the point, "tf32x3" for two such numbers each, nearly float32. Only "cuda" has others than
            "float32".

    Raises:
        ShapeError: shapes that do not fit the component.
        OptionError, RuleError: an option outside its range.
    """
    started = time.monotonic()
    request = checked_request(
        component,
        shapes,
        target=target,
        threads=threads,
        effort=effort,
        budget_s=budget_s,
        rules=rules,
        seed=seed,
        constants=constants,
        precision=precision,
    )
    results, key = results_at(database), key_of(request, models_of(request).machine)
    known = recall(request, key, results)
    if known is not None:
        return known
    found = _search_here(request) if budget_s is None else _search_apart(request, started + budget_s)
    keep(request, key, results, found)
    report = replace(found.report, seconds={**found.report.seconds, "total": time.monotonic() - started})
    return optimized(request, replace(found, report=report))


def recall(request: Request, key: Key, results: Results) -> Optimized | None:
    """What ``results`` know of ``request``, whose key is ``key``."""
    record = results.find(key, request.budget_s)
    if record is None or results.path is None:
        return None
    return recalled(request, record, results.path, lambda own: _judged(own, request, models_of(request)))


def keep(request: Request, key: Key, results: Results, found: Found) -> None:
    """Save ``found`` in ``results``, unless its search was stopped by accident; without the user's own schedule."""
    if found.report.stop_reason not in ("interrupted", "died"):
        cut_short = found.report.stop_reason in ("time", "budget")
        own = request.given if request.given != request.plain else None
        results.save(record_of(key, found, request.budget_s if cut_short else None, own))


def optimized(request: Request, found: Found) -> Optimized:
    """What ``optimize`` returns for ``found``."""
    best, *others = found.schedules
    baseline = next(s for s in found.schedules if s.component == request.given)
    return Optimized(
        best,
        baseline,
        found.report,
        request.target,
        request.threads,
        request.extents,
        lambda: tuple(others),
        request.constants,
        request.precision,
    )


def models_of(request: Request) -> Models:
    """The cost models of the request's target."""
    from ilang_eq.extract.models import MODELS

    return MODELS[request.target](request.threads, request.precision)


def improving(request: Request) -> Iterator[Found]:
    """Explore, propose, judge, measure: the whole pipeline. Yields ever better results, so that it can be stopped.

    First what is written: the component as given, and without a schedule. Where time may not suffice, then the best of
    the component in small pieces; then of it whole; and if that is asked for, the same as timed.
    """
    from ilang_eq.rewrites.engine import Limits
    from ilang_eq.rewrites.explore import explore

    started = time.perf_counter()
    models = models_of(request)
    written = [_judged(c, request, models) for c in dict.fromkeys((request.given, request.plain))]
    report = Report({"judge": time.perf_counter() - started}, 0, 0, {}, "interrupted")
    yield Found(_ranked(written, models), report)
    limits = Limits()
    if request.budget_s is not None:
        limits = replace(limits, seconds=min(limits.seconds, request.budget_s / 2))
    element = set_aside(request.graph, request.populated, MOST_AXES)
    space, explored = explore(element.graph, request.rules, limits)
    space = replace(space, constants=frozenset(request.constants))
    report = Report(explored.seconds, explored.nodes, explored.facts, explored.rules, explored.stop_reason)
    found = Found(_ranked(written, models), report)
    if not request.graph.nodes:
        # it passes inputs on: there is nothing to schedule
        yield found
        return
    for k, pieces in _stages(request):
        found = _proposed(request, element, models, space, k, pieces, written, report)
        yield found
    if request.effort == "measure":
        yield _timed(request, found, started)


def _stages(request: Request) -> Iterator[tuple[int, tuple[int, ...]]]:
    """How many structures to propose, in pieces of how many expressions: small first where time may not suffice."""
    from ilang_eq.extract.segments import LIMITS

    largest, *_, smallest = LIMITS
    nodes = len(request.graph.nodes)
    if request.budget_s is not None and nodes > (smallest if request.budget_s < SHORT_S else largest):
        yield 1, (smallest,)
    yield PROPOSALS, LIMITS


def _proposed(
    request: Request,
    element: Element,
    models: Models,
    space: Space,
    k: int,
    pieces: tuple[int, ...],
    written: Sequence[Schedule],
    report: Report,
) -> Found:
    """The proposals of the additive model, judged by the full one, and ranked with what is ``written``."""
    from ilang_eq.extract.detours import without_detours
    from ilang_eq.extract.search import NOTABLE, propose
    from ilang_eq.extract.segments import propose_between_products, propose_in_segments

    proposing = time.perf_counter()

    def search(piece: Space, extents: Mapping[Dimension, int]) -> list[Candidate]:
        return propose(piece, extents, inside, k, request.seed)

    threads = element.threads(request.threads)
    inside = models if threads == request.threads else models_of(replace(request, threads=threads))
    sizes = {axis: element.extents[dimension] for axis, dimension in enumerate(space.extents)}
    proposals = propose_in_segments(without_detours(space, sizes, inside.machine), element.extents, k, search, pieces)
    proposals += propose_between_products(space, element.extents, k, search)
    judging = time.perf_counter()
    known = {s.component for s in written}
    components: dict[Component, bool] = {}
    for p in proposals:
        for graph in models.variants(element.whole(p.graph)):
            components.setdefault(unwire(graph), p.unusual)
    judged, refused = _judge([c for c in components if c not in known], request, models)
    usual = min((s.cost.seconds for s in (*written, *judged) if not components.get(s.component)), default=math.inf)
    judged = [s for s in judged if not components[s.component] or NOTABLE * s.cost.seconds < usual]
    seconds = {**report.seconds, "propose": judging - proposing, "judge": time.perf_counter() - judging}
    return Found(_ranked([*written, *judged], models), replace(report, seconds=seconds, refused=tuple(refused)))


def _judge(
    components: Iterable[Component], request: Request, models: Models
) -> tuple[list[Schedule], list[tuple[str, str]]]:
    """Cost each component. One that cannot be lowered is reported, not raised."""
    judged: list[Schedule] = []
    refused: list[tuple[str, str]] = []
    for component in components:
        try:
            judged.append(_judged(component, request, models))
        except ILangError as error:
            refused.append((str(component), error.message))
    return judged, refused


def _judged(component: Component, request: Request, models: Models) -> Schedule:
    """``component`` with its cost by the full model, on its loop IR. Raises ILangError if it cannot be lowered."""
    from ilang_eq.extract.footprint import bytes_of
    from ilang_eq.lower.preparation import recurring
    from ilang_eq.lower.resizing import Lowerings
    from ilang_eq.lower.walk import updates

    # without comments, as the search lowers: what its kernels cost is known
    program = recurring(Lowerings().lower(wire(component)), request.constants)
    found = (update for kernel in program.kernels for update in updates(kernel.body))
    computed = {update.target.buffer for update in found if not _is_copied(update.value)}
    stored = bytes_of((b for b in program.buffers if b.role != "output" and b.name in computed), request.populated)
    return Schedule(component, models.judge(program, request.populated), stored=stored)


def _is_copied(value: Scalar) -> bool:
    """Whether ``value`` is one place, or a number times one: what packing an argument makes. A scalar was computed."""
    from ilang_eq.lower.ir import Apply, Constant, Load

    match value:
        case Load(indices=indices):
            return bool(indices)
        case Apply("mul" | "div", (Load(indices=indices), Constant()) | (Constant(), Load(indices=indices))):
            return bool(indices)
        case _:
            return False


def _ranked(schedules: Iterable[Schedule], models: Models) -> tuple[Schedule, ...]:
    """Cheapest first; but where that is doubtful, one that stores little: what caches keep, and extents, matter less.

    It is not if more is stored than the ``kept`` bytes: such results come from far away, whatever the cost says; nor if
    no more than the ``near`` bytes are, or the ``shared``. And of several of those that cost next to the same, the one
    with the fewest kernels; of several of these that cost the same, the one with the fewest loops that are split.
    """
    cheapest, *others = sorted(schedules, key=lambda s: s.cost.seconds)
    most = cheapest.cost.seconds * (DOUBTFUL if cheapest.stored <= models.kept else NEXT_TO_SAME)
    doubtful = [cheapest, *(s for s in others if s.cost.seconds < most)]
    beyond_doubt = models.near if cheapest.stored <= models.kept else models.shared
    little = max(AS_LITTLE * min(s.stored for s in doubtful), beyond_doubt)
    best, *lean = (s for s in doubtful if s.stored <= little)
    alike = [best, *(s for s in lean if s.cost.seconds < NEXT_TO_SAME * best.cost.seconds)]
    fewest = min(alike, key=lambda s: s.cost.kernels)
    same = (s for s in alike if s.cost.kernels == fewest.cost.kernels)
    first = min((s for s in same if s.cost.seconds <= THE_SAME * fewest.cost.seconds), key=_splits)
    return (first, *(s for s in (cheapest, *others) if s is not first))


def _splits(schedule: Schedule) -> int:
    return sum(len(sizes) for node in wire(schedule.component).nodes for _, sizes in node.expr.splits)


def _timed(request: Request, found: Found, started: float) -> Found:
    """``found`` with the first few schedules timed, in what is left of the budget."""
    from ilang_eq.measure import measured

    left = None if request.budget_s is None else max(request.budget_s - (time.perf_counter() - started), 1e-3)
    timing = time.perf_counter()
    schedules = measured(
        found.schedules,
        request.extents,
        request.target,
        request.threads,
        left,
        request.seed,
        request.constants,
        request.precision,
    )
    seconds = {**found.report.seconds, "measure": time.perf_counter() - timing}
    return Found(tuple(schedules), replace(found.report, seconds=seconds))


@seldom_collected()
def _search_here(request: Request) -> Found:
    """The search in this process. Ctrl-C returns the best so far."""
    found = None
    try:
        for better in improving(request):
            found = better
    except KeyboardInterrupt:
        if found is None:
            raise
        return _interrupted(found)
    assert found is not None
    return found


def _search_apart(request: Request, deadline: float) -> Found:
    """The search in a process that is killed at ``deadline``, on the clock of ``time.monotonic``."""
    from ilang_eq.workers.process import Died, Expired, Worker

    with Worker() as worker:
        found = next(improving(request))
        try:
            for record in worker.improvements(request, deadline):
                found = found_in(record)
        except Expired:
            return stopped(found, "budget")
        except KeyboardInterrupt:
            return _interrupted(found)
        except Died as error:
            warnings.warn(f"{error}; this is the best it had found", stacklevel=3)
            return stopped(found, "died")
    return found


def _interrupted(found: Found) -> Found:
    warnings.warn("interrupted; this is the best it had found", stacklevel=4)
    return stopped(found, "interrupted")


def stopped(found: Found, reason: str) -> Found:
    """``found``, by a search that did not come to its end."""
    return replace(found, report=replace(found.report, stop_reason=reason))
