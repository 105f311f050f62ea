from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from ilang_eq.errors import RuleError
from ilang_eq.lang.component import I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.rewrites import Rule, default, rule_set
from ilang_eq.rewrites.check import check_space
from ilang_eq.rewrites.engine import Engine, Limits
from ilang_eq.rewrites.explore import explore
from tests.rewrites.components import ATTENTION, MATMUL, chained, report_of, space_of

DIGEST = """
import hashlib
from tests.rewrites.components import ATTENTION, chained, space_of
print(hashlib.sha256(repr(space_of(chained([ATTENTION] * 2))).encode()).hexdigest())
"""


def test_the_report_says_what_happened() -> None:
    report = report_of(ATTENTION)
    assert list(report.seconds) == [
        "load egglog", "encode", "algebra", "packing", "decode", "nests", "online", "staging", "read back",
    ]  # fmt: skip
    assert report.stop_reason == "saturated"
    assert list(report.rules) == [rule.name for rule in default]
    assert report.rules["defer-division"][0] == 1
    assert report.rules["associate-contraction"][0] == 0
    assert report.nodes > 100
    assert report.facts > 1000


def test_two_processes_find_the_same_byte_for_byte() -> None:
    ours = hashlib.sha256(repr(space_of(chained([ATTENTION] * 2))).encode()).hexdigest()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        theirs = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        assert theirs.stdout.strip() == ours


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(Limits(nodes=40), "nodes"), (Limits(iterations=1), "iterations"), (Limits(seconds=0.0), "time")],
)
def test_a_limited_search_still_gives_a_valid_space(limits: Limits, reason: str) -> None:
    graph = wire(chained([MATMUL] * 4))
    space, report = explore(graph, default, limits)
    assert report.stop_reason == reason
    check_space(space)
    whole, _ = explore(graph, default)
    assert sum(map(len, space.nests.values())) < sum(map(len, whole.nests.values()))


def test_a_node_limit_bounds_what_a_phase_adds() -> None:
    full = report_of(chained([MATMUL] * 6), rule_set("algebra")).nodes
    _, report = explore(wire(chained([MATMUL] * 6)), rule_set("algebra"), Limits(nodes=full // 4))
    assert report.nodes < full


def test_a_rule_that_changes_axes_is_an_error() -> None:
    wrong = Rule("wrong", "Σ_J x → x", "algebra", "(rewrite (Red op j x) x)")
    with pytest.raises(RuleError):
        explore(wire(MATMUL), default + wrong)


def test_combinator_laws_are_for_another_search() -> None:
    with pytest.raises(RuleError, match="phase 'combinators'"):
        explore(wire(MATMUL), default + rule_set("combinator-laws"))


def test_a_users_rule_takes_part() -> None:
    halve = Rule("halve", "x/2 → x·0.5", "algebra", '(rewrite (Bin "div" x (Num 2.0)) (Bin "mul" x (Num 0.5)))')
    report = explore(wire(i("ij/2~ij")), default + halve)[1]
    assert report.rules["halve"][0] == 1


def test_eight_blocks_grow_linearly_and_fast() -> None:
    Engine()
    two, four, eight = (report_of(chained([ATTENTION] * n)) for n in (2, 4, 8))
    assert eight.stop_reason == "saturated"
    assert eight.nodes - four.nodes <= 2 * (four.nodes - two.nodes) + 8
    assert eight.facts - four.facts <= 2.1 * (four.facts - two.facts)
    assert sum(eight.seconds.values()) < 5


def test_attention_is_explored_within_a_third_of_a_second() -> None:
    Engine()
    assert min(sum(report_of(ATTENTION).seconds.values()) for _ in range(3)) < 0.3


def test_stacked_self_attention_saturates() -> None:
    graph = wire(chained([(I & (I & I)) >> ATTENTION] * 4))
    space, report = explore(graph, default)
    assert report.stop_reason == "saturated"
    check_space(space)
    assert {repair.kind for repair in space.repairs} == {"max-shift", "divisor"}
