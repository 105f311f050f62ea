"""The search: everything equal to a component, and every legal schedule of it, by rules, within limits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ilang_eq.errors import RuleError
from ilang_eq.lang.graph import Graph
from ilang_eq.rewrites import algebra, bounds, facts, online, schedule, vocabulary
from ilang_eq.rewrites.decode import Classes, decode
from ilang_eq.rewrites.encode import encode
from ilang_eq.rewrites.engine import Engine, Limits, Run, StopReason
from ilang_eq.rewrites.naming import name_axes
from ilang_eq.rewrites.rules import Phase, RuleSet
from ilang_eq.rewrites.space import Nest, Repair, Space, Staging, Variant


@dataclass(frozen=True, slots=True)
class SearchReport:
    """How a search went.

    Attributes:
        seconds: by phase, in order.
        nodes: e-nodes at the end, nests included.
        facts: rows of every relation at the end.
        rules: per rule that was tried, (matches, seconds), in the order of the rule set.
        stop_reason: "saturated", or the first limit that a phase reached.
    """

    seconds: Mapping[str, float]
    nodes: int
    facts: int
    rules: Mapping[str, tuple[int, float]]
    stop_reason: StopReason


LIMITS = Limits()
"""What ``explore`` stops at unless told otherwise."""

_PHASES: tuple[Phase, ...] = ("algebra", "packing", "nests", "online", "staging")


def explore(graph: Graph, rules: RuleSet, limits: Limits = LIMITS) -> tuple[Space, SearchReport]:
    """Every computation equal to ``graph`` that ``rules`` find within ``limits``, with its legal schedules.

    Raises:
        RuleError: egglog refuses a rule, a rule changes the axes of a value, or is for combinators.
        ShapeError: ranks in ``graph`` that contradict each other.
    """
    search = _Search(limits)
    with search.phase("load egglog"):
        engine = _engine(rules)
    with search.phase("encode"):
        terms = name_axes(graph)
        engine.execute(encode(terms))
    with search.phase("algebra"):
        search.run(engine, "algebra", analysis=vocabulary.ANALYSIS, share=0.5)
    with search.phase("packing"):
        search.run(engine, "packing")
    with search.phase("decode"):
        found = decode(engine, terms)
        engine.execute(facts.facts(found.classes))
    with search.phase("nests"):
        search.run(engine, "nests")
    with search.phase("online"):
        for stratum in online.ANALYSES:
            engine.saturate(stratum)
        search.run(engine, "online")
    with search.phase("staging"):
        search.run(engine, "staging", analysis=schedule.ANALYSIS)
    with search.phase("read back"):
        space = _read_back(engine, found, terms.extents)
    return space, search.report(engine, rules)


@dataclass(slots=True)
class _Search:
    """The clock and the tally of one search."""

    limits: Limits
    started: float = field(default_factory=time.perf_counter)
    seconds: dict[str, float] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start

    def run(self, engine: Engine, ruleset: str, analysis: str | None = None, share: float = 1.0) -> None:
        """Run a phase within ``share`` of the time left; ``Limits.nodes`` bounds what each phase adds."""
        left = self.limits.seconds - (time.perf_counter() - self.started)
        limits = Limits(engine.size() + self.limits.nodes, share * left, self.limits.iterations)
        self.runs.append(engine.run(ruleset, limits, analysis))

    def report(self, engine: Engine, rules: RuleSet) -> SearchReport:
        tried = {rule.name: (0, 0.0) for rule in rules}
        for run in self.runs:
            for name, count in run.matches.items():
                tried[name] = (tried[name][0] + count, tried[name][1] + run.rule_seconds.get(name, 0.0))
        stopped: list[StopReason] = [run.stop_reason for run in self.runs if run.stop_reason != "saturated"]
        nodes, rows = engine.size(), sum(engine.sizes().values())
        return SearchReport(self.seconds, nodes, rows - nodes, tried, stopped[0] if stopped else "saturated")


def _engine(rules: RuleSet) -> Engine:
    for rule in rules:
        if rule.phase not in _PHASES:
            raise RuleError(f"rule {rule.name!r} is of phase {rule.phase!r}, which no search runs", legal=_PHASES)
    engine = Engine(watched=(*vocabulary.NODE_TABLES, "Nest"))
    engine.execute(vocabulary.DECLARATIONS)
    for ruleset in (*_PHASES, schedule.ANALYSIS, *online.ANALYSES):
        engine.ruleset(ruleset)
    for declarations in (
        algebra.CONTEXT,
        bounds.CONTEXT,
        facts.DECLARATIONS,
        schedule.DECLARATIONS,
        online.DECLARATIONS,
    ):
        engine.execute(declarations)
    engine.add_rules(rules)
    return engine


def _read_back(engine: Engine, found: Classes, extents: tuple[tuple[int, int], ...]) -> Space:
    """Nests, staging and repairs of the variants, sorted."""
    variants = facts.variants(found.classes)
    tables = engine.tables(("Nest", "staged", "inlined", "repair", "Class"))
    numbers = {t: c for c, t in tables["Class"]}
    nests: dict[Variant, list[Nest]] = {variant: [] for variant in variants}
    for v, nest, _ in tables["Nest"]:
        nests[variants[v]].append(nest)
    staged = [(c, n, k, s, False, p, q) for c, n, k, s, p, q in tables["staged"]]
    inlined = [(c, n, k, len(n), True, p, q) for c, n, k, p, q in tables["inlined"]]
    stagings = tuple(
        Staging(variants[c], n, k, s, i, variants[p], q) for c, n, k, s, i, p, q in sorted(staged + inlined)
    )
    repairs = tuple(Repair(variants[v], numbers[p], kind) for v, p, kind in tables["repair"])
    return Space(
        classes=found.classes,
        outputs=found.outputs,
        extents=extents,
        nests={variant: tuple(sorted(grown, key=lambda n: (len(n), n))) for variant, grown in nests.items()},
        stagings=stagings,
        repairs=tuple(sorted(repairs)),
        splittable=frozenset(axis for grown in nests.values() for nest in grown for axis in nest),
    )
