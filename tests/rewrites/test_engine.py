from __future__ import annotations

import subprocess
import sys

import pytest

from ilang_eq.errors import RuleError
from ilang_eq.rewrites import Rule
from ilang_eq.rewrites.engine import Engine, Limits, split_commands

COUNT = Rule("count", "n → n + 1", "algebra", "(rule ((n i)) ((n (+ i 1))))")


def counter(*rules: Rule) -> Engine:
    engine = Engine(watched=("n",))
    engine.ruleset("algebra")
    engine.execute("(relation n (i64)) (n 0)")
    engine.add_rules(rules)
    return engine


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("(a) (b (c)) ", ["(a)", "(b (c))"]),
        ('(a ")") ; (no)\n(b ; )\n)', ['(a ")")', "(b ; )\n)"]),
        ("", []),
    ],
)
def test_split_commands(text: str, commands: list[str]) -> None:
    assert split_commands(text) == commands


@pytest.mark.parametrize("text", ["(a", "(a))", "a", '(a "', "(a (b)"])
def test_split_commands_refuses_what_does_not_match(text: str) -> None:
    with pytest.raises(RuleError):
        split_commands(text)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(nodes=5), "nodes"),
        (Limits(iterations=3), "iterations"),
        (Limits(seconds=0.0), "time"),
    ],
)
def test_limits_hold(limits: Limits, reason: str) -> None:
    engine = counter(COUNT)
    run = engine.run("algebra", limits)
    assert run.stop_reason == reason
    assert engine.size() == {"nodes": 6, "iterations": 4, "time": 2}[reason]
    assert run.iterations == engine.size() - 1


def test_saturation_and_matches() -> None:
    engine = counter(Rule("upto-four", "n → n + 1", "algebra", "(rule ((n i) (< i 4)) ((n (+ i 1))))"))
    run = engine.run("algebra", Limits())
    assert (run.stop_reason, run.matches) == ("saturated", {"upto-four": 4})
    assert engine.tables(["n"])["n"] == [(i,) for i in range(5)]


def test_matches_of_a_rule_in_several_parts_add_up() -> None:
    two = "(rule ((n 0)) ((n 7))) (rule ((n 7)) ((n 8)))"
    assert counter(Rule("two", "0 → 7 → 8", "algebra", two)).run("algebra", Limits()).matches == {"two": 2}


def test_cells_of_every_sort() -> None:
    engine = Engine()
    engine.execute(
        "(sort S (Set i64)) (sort V (Vec S)) (relation r (i64 f64 String bool V)) (function f (i64) S :no-merge)"
    )
    engine.execute('(r 1 -2.5 "x (;" true (vec-of (set-of 2 1) (set-empty))) (set (f 3) (set-of 4))')
    tables = engine.tables(["r", "f"])
    assert tables["r"] == [(1, -2.5, "x (;", True, (frozenset({1, 2}), frozenset()))]
    assert tables["f"] == [(3, frozenset({4}))]


def test_an_ill_typed_rule_is_named() -> None:
    with pytest.raises(RuleError, match="rule 'bad'"):
        counter(Rule("bad", "n → ?", "algebra", "(rule ((n i)) ((n x)))"))


def test_a_panic_becomes_a_rule_error() -> None:
    engine = counter(Rule("boom", "n → !", "algebra", '(rule ((n i)) ((panic "boom")))'))
    with pytest.raises(RuleError, match="boom"):
        engine.run("algebra", Limits())


def test_a_merge_of_values_that_differ_is_an_error() -> None:
    engine = Engine()
    engine.execute("(function f () i64 :no-merge) (set (f) 1)")
    with pytest.raises(RuleError):
        engine.execute("(set (f) 2)")


BOTH = """
import logging, sys
logging.basicConfig(level=logging.INFO)
from ilang_eq.rewrites.engine import Engine
engine = Engine()
print("egglog" in sys.modules)
import egglog.bindings
engine.execute("(relation r (i64))")
print(isinstance(engine._egraph, egglog.bindings.EGraph), egglog.EGraph() is not None)
"""


def test_the_package_is_not_loaded_but_still_can_be_and_logs_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", BOTH], capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["False", "True", "True"], "")
