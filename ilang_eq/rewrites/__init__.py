"""The e-graph: rules as data, and the search that runs them. Importing this loads nothing heavy."""

from ilang_eq.rewrites.registry import default, rule_set
from ilang_eq.rewrites.rules import Rule, RuleSet

__all__ = ["Rule", "RuleSet", "default", "rule_set"]
