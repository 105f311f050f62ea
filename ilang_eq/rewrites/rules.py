"""Rules as data, and the named sets they compose into.

Invariants:
  * a rule's ``text`` names no egglog ruleset and no egglog rule name: the engine files it under ``phase`` and ``name``
  * a rule set holds each rule once; a later phase never runs before an earlier one, whatever the set's order
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from ilang_eq.errors import RuleError

Tier = Literal["exact", "reassociating", "risky"]
"""How far a rule may move the result.

* ``exact``: the same bits (the sign of a zero aside)
* ``reassociating``: the same real function, rounded otherwise, with no new overflow in ordinary ranges
* ``risky``: equal over the reals, but it may overflow or lose digits
"""

Phase = Literal["combinators", "algebra", "packing", "nests", "online", "staging"]
"""When a rule runs: the egglog ruleset it belongs to."""

TIERS: tuple[Tier, ...] = get_args(Tier)
PHASES: tuple[Phase, ...] = get_args(Phase)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewrite or inference.

    Args:
        name: unique, in kebab-case.
        doc: what it does, as ``before → after``.
        phase: the egglog ruleset it runs in.
        text: egglog commands: declarations of its own, then ``rule``, ``rewrite`` or ``birewrite``.
        tier: how far it may move the result.
    """

    name: str
    doc: str
    phase: Phase
    text: str
    tier: Tier = "exact"


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A named, ordered set of rules. ``+`` joins two, ``-`` drops a rule, a phase or a set; ``in`` finds a rule."""

    name: str
    rules: tuple[Rule, ...]

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __contains__(self, item: Rule | str) -> bool:
        return any(rule == item if isinstance(item, Rule) else rule.name == item for rule in self.rules)

    def __add__(self, other: RuleSet | Rule) -> RuleSet:
        added = (other,) if isinstance(other, Rule) else other.rules
        new = tuple(rule for rule in added if rule.name not in self)
        return RuleSet(f"{self.name} + {other.name}", self.rules + new)

    def __sub__(self, other: RuleSet | Rule | str) -> RuleSet:
        """This set without a rule, the rules of another set, or all rules of a phase.

        Raises:
            RuleError: a name that is neither a rule of this set nor a phase.
        """
        dropped = self._named(other) if isinstance(other, str) else _names(other)
        label = f'"{other}"' if isinstance(other, str) else other.name
        return RuleSet(f"{self.name} - {label}", tuple(rule for rule in self.rules if rule.name not in dropped))

    def upto(self, tier: Tier) -> RuleSet:
        """Only the rules that move the result no further than ``tier``.

        Raises:
            RuleError: no such tier.
        """
        if tier not in TIERS:
            raise RuleError(f"no tier {tier!r}", legal=TIERS)
        kept = TIERS[: TIERS.index(tier) + 1]
        return RuleSet(f"{self.name}.upto({tier!r})", tuple(rule for rule in self.rules if rule.tier in kept))

    def phase(self, phase: Phase) -> tuple[Rule, ...]:
        """The rules that run in ``phase``, in order."""
        return tuple(rule for rule in self.rules if rule.phase == phase)

    @property
    def fingerprint(self) -> str:
        """A digest of what the rules say, whatever the set is called."""
        digest = hashlib.sha256()
        for rule in self.rules:
            digest.update(f"{rule.name}\0{rule.phase}\0{rule.tier}\0{rule.text}\0".encode())
        return digest.hexdigest()

    def _named(self, name: str) -> frozenset[str]:
        if name in self:
            return frozenset((name,))
        if name in PHASES:
            return frozenset(rule.name for rule in self.rules if rule.phase == name)
        legal = tuple(rule.name for rule in self.rules) + PHASES
        raise RuleError(f"no rule {name!r} in rule set {self.name!r}", legal=legal)


def _names(rules: RuleSet | Rule) -> frozenset[str]:
    return frozenset((rules.name,)) if isinstance(rules, Rule) else frozenset(rule.name for rule in rules)
