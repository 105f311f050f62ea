from __future__ import annotations

from typing import cast

import pytest

from ilang_eq.errors import RuleError
from ilang_eq.rewrites import Rule, RuleSet, default, rule_set
from ilang_eq.rewrites.rules import PHASES, TIERS, Tier

A = Rule("a", "x → y", "algebra", "(rewrite (Un op x) x)")
B = Rule("b", "x → y", "algebra", "(rewrite (Un op x) x)", "reassociating")
C = Rule("c", "x → y", "nests", "(rewrite (Un op x) x)", "risky")
ABC = RuleSet("abc", (A, B, C))


def names(rules: RuleSet) -> list[str]:
    return [rule.name for rule in rules]


def test_union_keeps_order_and_drops_repeats() -> None:
    assert names(RuleSet("x", (B,)) + ABC) == ["b", "a", "c"]
    assert names(RuleSet("x", (B,)) + A) == ["b", "a"]


@pytest.mark.parametrize(
    ("dropped", "left"),
    [("b", ["a", "c"]), (B, ["a", "c"]), (RuleSet("x", (A, C)), ["b"]), ("algebra", ["c"])],
)
def test_difference_by_name_rule_set_and_phase(dropped: RuleSet | Rule | str, left: list[str]) -> None:
    assert names(ABC - dropped) == left


def test_difference_of_an_unknown_name_lists_the_legal_ones() -> None:
    with pytest.raises(RuleError, match="no rule 'd'") as caught:
        _ = ABC - "d"
    assert caught.value.legal == ("a", "b", "c", *PHASES)


def test_contains() -> None:
    assert "a" in ABC
    assert A in ABC
    assert "d" not in ABC
    assert A not in RuleSet("x", (B,))


def test_upto_caps_the_tier() -> None:
    assert [names(ABC.upto(tier)) for tier in TIERS] == [["a"], ["a", "b"], ["a", "b", "c"]]
    with pytest.raises(RuleError, match="no tier"):
        ABC.upto(cast(Tier, "bold"))


def test_fingerprint_is_of_the_rules_and_their_order_not_of_the_name() -> None:
    assert RuleSet("x", (A, B)).fingerprint == RuleSet("y", (A, B)).fingerprint
    assert len({ABC.fingerprint, RuleSet("x", (A, B)).fingerprint, RuleSet("x", (B, A)).fingerprint}) == 3


def test_registry_knows_sets_and_single_rules() -> None:
    assert rule_set("default") is default
    assert rule_set(ABC) is ABC
    assert len(rule_set("none")) == 0
    assert names(rule_set("split")) == ["split"]
    assert {rule.tier for rule in rule_set("exact")} == {"exact"}
    assert not any(rule.tier == "risky" for rule in default)
    assert {"split", "interchange", "defer-division", "hoist-division", "stage", "stage-online"} <= set(names(default))


def test_registry_refuses_unknown_names_and_lists_the_legal_ones() -> None:
    with pytest.raises(RuleError, match="no rule set 'defualt'") as caught:
        rule_set("defualt")
    assert {"default", "none", "algebra", "schedule", "split"} <= set(caught.value.legal)


def test_rule_names_are_unique_and_documented() -> None:
    rules = rule_set("all").rules
    assert len({rule.name for rule in rules}) == len(rules)
    assert all("→" in rule.doc for rule in rules)
