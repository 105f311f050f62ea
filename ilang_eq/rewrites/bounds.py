"""Bounds of values, and rules for what is bounded: e^x needs no maximum to be subtracted where it cannot overflow.

``CONTEXT`` keeps, for terms of which it is known:

    (least t) (most t)   t lies between them, if it is not NaN
    (tame t)             both are within ``TAME`` of zero

by interval arithmetic (papers_notes/intervals.md). What several forms of a term say is intersected. Each step widens
the interval by more than a kernel rounds, so that what it computes is in there as well, and no cycle of equal terms
narrows an interval for ever.
"""

from __future__ import annotations

import math

from ilang_eq.rewrites.rules import Rule

TAME = 50.0
"""e^x is between 2e-22 and 5e21 then: a million of them, times something ordinary, neither overflow nor vanish."""

_WIDER = 1e-6
"""Of an end of an interval: some units in the last place of float32."""

_POWER = f"(^ {math.e!r} a)"

_STEPS: tuple[tuple[str, str, str, str], ...] = (
    ("least", "(Num c)", "", "c"),
    ("most", "(Num c)", "", "c"),
    ("least", '(Un "sub" x)', "(= a (most x))", "(neg a)"),
    ("most", '(Un "sub" x)', "(= a (least x))", "(neg a)"),
    ("least", '(Un "pow" x)', "(= a (least x)) (< a 700.0)", _POWER),
    ("most", '(Un "pow" x)', "(= a (most x)) (< a 700.0)", _POWER),
    ("least", '(Bin "add" x y)', "(= a (least x)) (= b (least y))", "(+ a b)"),
    ("most", '(Bin "add" x y)', "(= a (most x)) (= b (most y))", "(+ a b)"),
    ("least", '(Bin "sub" x y)', "(= a (least x)) (= b (most y))", "(- a b)"),
    ("most", '(Bin "sub" x y)', "(= a (most x)) (= b (least y))", "(- a b)"),
    ("least", '(Bin "mul" (Num c) x)', "(> c 0.0) (= a (least x))", "(* c a)"),
    ("most", '(Bin "mul" (Num c) x)', "(> c 0.0) (= a (most x))", "(* c a)"),
    ("least", '(Bin "mul" (Num c) x)', "(< c 0.0) (= a (most x))", "(* c a)"),
    ("most", '(Bin "mul" (Num c) x)', "(< c 0.0) (= a (least x))", "(* c a)"),
    ("least", '(Bin "div" x (Num c))', "(> c 0.0) (= a (least x))", "(/ a c)"),
    ("most", '(Bin "div" x (Num c))', "(> c 0.0) (= a (most x))", "(/ a c)"),
    ("least", '(Bin "div" (Num c) x)', "(> c 0.0) (= a (least x)) (> a 0.0)", "0.0"),
    ("most", '(Bin "div" (Num c) x)', "(> c 0.0) (= a (least x)) (> a 0.0)", "(/ c a)"),
    ("least", '(Un "div" x)', "(= a (least x)) (> a 0.0)", "0.0"),
    ("most", '(Un "div" x)', "(= a (least x)) (> a 0.0)", "(/ 1.0 a)"),
    # of a number and NaN, the larger and the smaller are the number
    ("least", '(Bin "max" (Num c) x)', "", "c"),
    ("most", '(Bin "max" (Num c) x)', "(= a (most x))", "(max a c)"),
    ("least", '(Bin "min" (Num c) x)', "(= a (least x))", "(min a c)"),
    ("most", '(Bin "min" (Num c) x)', "", "c"),
    *((end, f'(Red "{op}" j x)', f"(= a ({end} x))", "a") for op in ("max", "min") for end in ("least", "most")),
)
"""End of the interval, term, what is known and what follows; axes without elements have rules of their own."""


def _step(end: str, pattern: str, given: str, value: str) -> str:
    sign = "-" if end == "least" else "+"
    return f"""
(rule ((= t {pattern}) {given} (= v {value})) ((set ({end} t) ({sign} v (* {_WIDER} (abs v))))) :ruleset analysis)"""


CONTEXT = f"""
(function least (Term) f64 :merge (max old new))
(function most (Term) f64 :merge (min old new))
(relation tame (Term))
(rule ((nonnegative t)) ((set (least t) 0.0)) :ruleset analysis)
(rule ((= a (least t)) (= b (most t)) (>= a {-TAME}) (<= a {TAME}) (>= b {-TAME}) (<= b {TAME})) ((tame t))
      :ruleset analysis)
{"".join(_step(*step) for step in _STEPS)}
"""


BOUNDED = (
    Rule(
        "unshift-power",
        "e^(x - m) → e^x/e^m inside a sum, m free of S, both known to be within ±50: the power leaves the sum",
        "algebra",
        """
        (rule ((grouped t s) (= t (Un "pow" (Bin "sub" x m))) (tame x) (tame m) (= a (axes m))
               (= (set-length (set-intersect a s)) 0))
              ((union t (Bin "div" (Un "pow" x) (Un "pow" m)))))
        """,
        "reassociating",
    ),
    Rule(
        "cancel-power",
        "(x/e^m)/(y/e^m) → x/y, m known to be within ±50",
        "algebra",
        """
        (rule ((= t (Bin "div" (Bin "div" x c) (Bin "div" y c))) (= c (Un "pow" m)) (tame m))
              ((union t (Bin "div" x y))))
        """,
        "reassociating",
    ),
    Rule(
        "unshift-log",
        "ln(x/e^m) + m → ln x, m known to be within ±50",
        "algebra",
        """
        (rule ((= t (Bin "add" (Un "log" (Bin "div" x (Un "pow" m))) m)) (tame m)) ((union t (Un "log" x))))
        """,
        "reassociating",
    ),
)
