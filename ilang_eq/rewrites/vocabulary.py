"""The egglog vocabulary that every rule speaks: terms over named axes, their axes, and the search's outputs.

A ``Term`` is what a class of the e-graph holds; its constructors mirror ``space.ENode``:

    (Read input dims)  (Packed input dims)  (Num value)  (Un op x)  (Bin op x y)  (Red op axes x)  (View x source dims)

``Axes`` is a set of axis numbers, ``Dims`` a list of them. ``(axes t)`` is the set of t's axes: the merge of two
values that differ panics, so a rule that changes a value's axes cannot go unnoticed.
"""

from __future__ import annotations

ANALYSIS = "analysis"
"""The ruleset that keeps ``axes`` and the demand marks up to date; saturated around every step of the algebra."""

NODE_TABLES = ("Read", "Packed", "Num", "Un", "Bin", "Red", "View")
"""The constructors of terms: their rows are the e-nodes."""

COMMUTATIVE = frozenset(("add", "mul", "max", "min"))
"""The ops whose operands the rules swap."""

DECLARATIONS = """
(sort Axes (Set i64))
(sort Dims (Vec i64))
(sort Term)
(constructor Read (i64 Dims) Term)
(constructor Packed (i64 Dims) Term)
(constructor Num (f64) Term)
(constructor Un (String Term) Term)
(constructor Bin (String Term Term) Term)
(constructor Red (String Axes Term) Term)
(constructor View (Term Dims Dims) Term)
(relation axis (i64))
(function axes (Term) Axes :no-merge)
(ruleset analysis)

(rule ((= t (Num x))) ((set (axes t) (set-empty))) :ruleset analysis)
(rule ((= t (Un op x)) (= a (axes x))) ((set (axes t) a)) :ruleset analysis)
(rule ((= t (Bin op x y)) (= a (axes x)) (= b (axes y))) ((set (axes t) (set-union a b))) :ruleset analysis)
(rule ((= t (Red op j x)) (= a (axes x))) ((set (axes t) (set-diff a j))) :ruleset analysis)
"""


def set_of(axes: tuple[int, ...] | frozenset[int]) -> str:
    """A set of axes as egglog text."""
    return f"(set-of {' '.join(map(str, sorted(axes)))})" if axes else "(set-empty)"


def vec_of(axes: tuple[int, ...]) -> str:
    """A list of axes as egglog text."""
    return f"(vec-of {' '.join(map(str, axes))})" if axes else "(vec-empty)"
