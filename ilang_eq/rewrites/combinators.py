"""Combinator laws in an e-graph: a researcher's tools for asking what is equal and what a law costs.

The optimizer does not need them: it wires components into dataflow first (``lang/wiring.py``), which makes
reassociation free.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ilang_eq.lang.component import Component
from ilang_eq.rewrites.combinator_laws import COMBINATOR_LAWS, COMBINATOR_LAWS_DUPLICATING
from ilang_eq.rewrites.combinator_terms import ARITY, COMPONENTS, Encoder, new_engine
from ilang_eq.rewrites.combinator_wiring import WIRING, wire_by_rules
from ilang_eq.rewrites.engine import Engine, Limits, Run
from ilang_eq.rewrites.rules import RuleSet

__all__ = [
    "COMBINATOR_LAWS",
    "COMBINATOR_LAWS_DUPLICATING",
    "LIMITS",
    "WIRING",
    "Saturation",
    "equal_by_laws",
    "saturate",
    "wire_by_rules",
]

LIMITS = Limits()
"""What ``saturate`` and ``equal_by_laws`` stop at unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """What rules made of a component: component terms before and after, and the run."""

    rows_before: int
    rows_after: int
    run: Run


def saturate(component: Component, rules: RuleSet = COMBINATOR_LAWS, limits: Limits = LIMITS) -> Saturation:
    """Run ``rules`` on the term of ``component`` until nothing changes or a limit is passed.

    Raises:
        RuleError: egglog refuses a rule, or one unites components of different arity.
    """
    engine = _engine(rules)
    Encoder(engine).add(component)
    before = _rows(engine)
    run = engine.run("combinators", limits, analysis=ARITY)
    return Saturation(before, _rows(engine), run)


def equal_by_laws(a: Component, b: Component, rules: RuleSet = COMBINATOR_LAWS, limits: Limits = LIMITS) -> bool:
    """Are two components equal under ``rules``, whatever their leaves compute?

    With ``WIRING`` among the rules the answer is exact, up to α-renaming of leaves. With laws alone, False means that
    they did not show it within ``limits``.

    Raises:
        RuleError: egglog refuses a rule, or one unites components of different arity.
    """
    engine = _engine(rules)
    encoder = Encoder(engine)
    pair = (encoder.add(a), encoder.add(b))
    deadline = time.perf_counter() + limits.seconds
    for _ in range(limits.iterations):
        if _same(engine, pair):
            return True
        left = Limits(limits.nodes, deadline - time.perf_counter(), 1)
        if engine.run("combinators", left, analysis=ARITY).stop_reason != "iterations":
            break
    return _same(engine, pair)


def _engine(rules: RuleSet) -> Engine:
    engine = new_engine()
    engine.add_rules(rules)
    return engine


def _rows(engine: Engine) -> int:
    sizes = engine.sizes()
    return sum(sizes[name] for name in COMPONENTS)


def _same(engine: Engine, parts: tuple[int, int]) -> bool:
    """Are two encoded components in one class?"""
    classes = dict(engine.tables(("part",))["part"])
    return classes[parts[0]] == classes[parts[1]]
