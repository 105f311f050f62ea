"""``optimize``: a component in, the same function as a scheduled component out. The pipeline is ``_search``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ilang_eq.backends import checked_target
from ilang_eq.errors import ILangError, OptionError
from ilang_eq.lang.component import Component
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.unscheduled import unscheduled
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire
from ilang_eq.optimized import Optimized, Report, Schedule
from ilang_eq.rewrites.rules import RuleSet

if TYPE_CHECKING:
    from ilang_eq.extract.models import Models

NOMINAL_EXTENT = 1024
"""What every dimension is taken to be where no shapes are given. Kernels serve any shape all the same."""

EFFORTS = ("model", "measure")
PROPOSALS = 8
"""How many structures the additive model hands on to the full model."""


@dataclass(frozen=True, slots=True)
class _Options:
    extents: dict[tuple[int, int], int]
    target: str
    threads: int
    effort: str
    budget_s: float | None
    rules: RuleSet | str
    seed: int


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
) -> Optimized:
    """Search equal computations and legal schedules of ``component`` for the fastest.

    Args:
        component: what to compute; if it is scheduled, its schedule competes with those found.
        shapes: of the inputs, to optimise for; ``NOMINAL_EXTENT`` everywhere if None.
        target: the backend the kernel is for.
        threads: threads the kernel may use; all cores if None.
        effort: "model" trusts the cost model; "measure" compiles the best few and times them.
        budget_s: seconds after which the search settles for the best found so far.
        rules: the name of a rule set, or a ``RuleSet``.
        seed: of the random inputs that "measure" times with.

    Raises:
        ShapeError: shapes that do not fit the component.
        OptionError, RuleError: an option outside its range.
    """
    started = time.perf_counter()
    graph = wire(component)
    options = _checked(graph, shapes, target, threads, effort, budget_s, rules, seed)
    plain = unwire(unscheduled(graph))
    given = component if any(node.expr.splits or node.expr.order for node in graph.nodes) else plain
    schedules, report = _search([given, plain], graph, options)
    if options.effort == "measure":
        from ilang_eq.measure import measured

        schedules = measured(schedules, options.extents, options.threads, budget_s, seed)
    report = replace(report, seconds={**report.seconds, "total": time.perf_counter() - started})
    baseline = next(s for s in schedules if s.component == given)
    return Optimized(tuple(schedules), baseline, report, target, options.threads, options.extents)


def _search(written: Sequence[Component], graph: Graph, options: _Options) -> tuple[list[Schedule], Report]:
    """Explore, propose, judge: the whole pipeline. Returns every schedule judged, the cheapest first.

    ``written`` compete too: the component as given, and without a schedule, in canonical axis names.
    """
    from ilang_eq.extract.models import MODELS
    from ilang_eq.extract.search import Candidate, propose
    from ilang_eq.extract.segments import propose_in_segments
    from ilang_eq.rewrites import rule_set
    from ilang_eq.rewrites.engine import Limits
    from ilang_eq.rewrites.explore import explore
    from ilang_eq.rewrites.space import Space

    models = MODELS[options.target](options.threads)
    limits = Limits() if options.budget_s is None else Limits(seconds=options.budget_s / 2)
    space, found = explore(unscheduled(graph), rule_set(options.rules), limits)
    proposing = time.perf_counter()

    def search(piece: Space, extents: Mapping[tuple[int, int], int]) -> list[Candidate]:
        return propose(piece, extents, models.machine, models.threads, PROPOSALS, options.seed)

    proposals = propose_in_segments(space, options.extents, PROPOSALS, search)
    judging = time.perf_counter()
    judged, refused = _judge([*written, *(unwire(p.graph) for p in proposals)], options.extents, models)
    seconds = {**found.seconds, "propose": judging - proposing, "judge": time.perf_counter() - judging}
    return judged, Report(seconds, found.nodes, found.facts, found.rules, found.stop_reason, tuple(refused))


def _judge(
    components: Sequence[Component], extents: dict[tuple[int, int], int], models: Models
) -> tuple[list[Schedule], list[tuple[str, str]]]:
    """Cost each component by the full model on its loop IR. One that cannot be lowered is reported, not raised."""
    from ilang_eq.lower import lower

    judged: list[Schedule] = []
    refused: list[tuple[str, str]] = []
    for component in dict.fromkeys(components):
        try:
            program = lower(wire(component), alternatives=False)
        except ILangError as error:
            if component is components[0]:
                raise
            refused.append((str(component), error.message))
            continue
        judged.append(Schedule(component, models.judge(program, extents)))
    return sorted(judged, key=lambda s: s.cost.seconds), refused


def _checked(
    graph: Graph,
    shapes: Sequence[tuple[int, ...]] | None,
    target: str,
    threads: int | None,
    effort: str,
    budget_s: float | None,
    rules: RuleSet | str,
    seed: int,
) -> _Options:
    from ilang_eq.c.kernel import checked_threads

    inferred = infer(graph)
    if shapes is None:
        shapes = [(NOMINAL_EXTENT,) * (rank or 0) for rank in inferred.ranks]
    if effort not in EFFORTS:
        raise OptionError(f"no effort {effort!r}", legal=EFFORTS)
    if budget_s is not None and not budget_s > 0:
        raise OptionError(f"a budget of {budget_s} seconds", expected="more than 0")
    extents = inferred.bind([tuple(shape) for shape in shapes])
    return _Options(extents, checked_target(target), checked_threads(threads), effort, budget_s, rules, seed)
