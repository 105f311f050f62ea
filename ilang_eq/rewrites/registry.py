"""The rule sets by name. Every rule is a set of its own too."""

from __future__ import annotations

from ilang_eq.errors import RuleError
from ilang_eq.rewrites import algebra, bounds, online, packing, schedule
from ilang_eq.rewrites.combinator_laws import COMBINATOR_LAWS, COMBINATOR_LAWS_DUPLICATING
from ilang_eq.rewrites.combinator_wiring import WIRING
from ilang_eq.rewrites.rules import RuleSet

_REASSOCIATING = algebra.REASSOCIATING + bounds.BOUNDED
_ALGEBRA = algebra.EXACT + _REASSOCIATING
_SCHEDULE = schedule.NESTS + schedule.STAGING
_ONLINE = online.FORMS + online.REPAIRS

default = RuleSet("default", _ALGEBRA + packing.PACKING + _SCHEDULE + _ONLINE)
"""What ``optimize`` uses: the exact and reassociating algebra, packing, split and interchange, staging, online
reductions."""

_SETS = {
    rules.name: rules
    for rules in (
        default,
        RuleSet("none", ()),
        RuleSet("all", _ALGEBRA + algebra.RISKY + packing.PACKING + _SCHEDULE + _ONLINE),
        RuleSet("algebra", _ALGEBRA),
        RuleSet("exact", algebra.EXACT),
        RuleSet("reassociating", _REASSOCIATING),
        RuleSet("risky", algebra.RISKY),
        RuleSet("packing", packing.PACKING),
        RuleSet("schedule", _SCHEDULE),
        RuleSet("online", _ONLINE),
        COMBINATOR_LAWS,
        COMBINATOR_LAWS_DUPLICATING,
        WIRING,
    )
}

_NAMED = _SETS | {rule.name: RuleSet(rule.name, (rule,)) for rules in _SETS.values() for rule in rules}


def rule_set(rules: RuleSet | str) -> RuleSet:
    """The rule set of that name, or of that one rule; a rule set is itself.

    Raises:
        RuleError: nothing has that name.
    """
    if isinstance(rules, RuleSet):
        return rules
    if rules not in _NAMED:
        raise RuleError(f"no rule set {rules!r}", legal=tuple(_NAMED))
    return _NAMED[rules]
