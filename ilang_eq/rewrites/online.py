"""Online reductions: which accumulator may read a statistic that is still being reduced over the same axes.

Let r = ⊕_j g(u_j, P) where P is reduced over j too. If g(u, P) = c(g_u(u), φ(P)) with c a product or a sum, r can be
corrected when P moves on to P': by r·φ(P')/φ(P), or r + c·(P' - P). That is legal iff the correction distributes over ⊕
(Neptune's repair function; RedFuser's decomposability test). The facts are found by walking from P to its readers:

    (statistic P id)          another reduction runs over axes that P is reduced over
    (reads t S)               S: the statistics that t reads while they may be unfinished: on a path to them no
                              reduction finishes the loop they are unfinished in
    (shift t P c)             t = U + c·P
    (along t P v a c)         t = a·v + c·P + B, with v what the extremum P is taken of, and B of P's axes alone
    (capped t P c)            the same with a = -c, and a·(v - P) at most 0 as long as P has seen v; (floored t P c):
                              at least 0
    (scale t P f b c)         t = U·φ(P); the family f says what φ is:
                                "max-shift"  b^(c·P), b > 1, P a maximum or minimum, raised to what is capped
                                "power"      P^c
                              with U independent of P, as above
    (repair v P kind)         variant v, a reduction, may read an unfinished P

Whatever has none of these forms is refused: ``exp(s - m) + b``, a power whose base is not a number, a sum of two forms
with different factors. So is a power whose factor may grow as P moves, because what has underflowed does not come
back, and a power of what P does not cap, ``exp(t - m)``: it may overflow before P has moved. The pass that lowers a
schedule looks again at the code it is about to correct.
"""

from __future__ import annotations

import math

from ilang_eq.rewrites.rules import Rule

ANALYSES = ("statistics", "dependencies")
"""Rulesets to saturate first, in this order: independence is read off what they did not find."""

DECLARATIONS = """
(relation statistic (Term i64))
(relation reduced-over (Term i64))
(function closes (Axes) Axes :merge (set-union old new))
(function reads (Term) Axes :merge (set-union old new))
(relation maximum (Term))
(relation minimum (Term))
(relation shift (Term Term f64))
(relation along (Term Term Term f64 f64))
(relation capped (Term Term f64))
(relation floored (Term Term f64))
(relation scale (Term Term String f64 f64))
(relation candidate (i64 Term))
(relation spans (i64 Term Term))
(relation encloses (i64 Term))
(relation open (i64 Term))
(relation inner (i64 Term))
(relation repair (i64 Term String))
(relation copies (String))
(relation extremum (String))
(copies "add") (copies "mul") (copies "max") (copies "min")
(extremum "max") (extremum "min")

(rule ((reduction v t op j x) (axis a) (set-contains j a)) ((reduced-over t a)) :ruleset statistics)
(rule ((reduced-over p a) (reduced-over t a) (!= p t) (= p (Class id))) ((statistic p id)) :ruleset statistics)
(rule ((statistic p id) (reduction v p "max" j x)) ((maximum p)) :ruleset statistics)
(rule ((statistic p id) (reduction v p "min" j x)) ((minimum p)) :ruleset statistics)
(rule ((reduction v t op j x)) ((set (closes j) (set-empty))) :ruleset statistics)
(rule ((reduction v t op j x) (reduced-over p a) (set-contains j a) (statistic p id))
      ((set (closes j) (set-of id))) :ruleset statistics)

(rule ((= t (Class c))) ((set (reads t) (set-empty))) :ruleset dependencies)
(rule ((statistic p id)) ((set (reads p) (set-of id))) :ruleset dependencies)
(rule ((unary t op x) (= s (reads x))) ((set (reads t) s)) :ruleset dependencies)
(rule ((binary t op x y) (= s (reads x))) ((set (reads t) s)) :ruleset dependencies)
(rule ((binary t op x y) (= s (reads y))) ((set (reads t) s)) :ruleset dependencies)
(rule ((reduction v t op j x) (= s (reads x)) (= d (closes j))) ((set (reads t) (set-diff s d))) :ruleset dependencies)

(rule ((reduction v t op j x) (shift x p c)) ((candidate v p)) :ruleset online)
(rule ((reduction v t op j x) (scale x p f b c)) ((candidate v p)) :ruleset online)
(rule ((candidate v p) (reduction v t op j x) (reduction w p o k y) (!= t p) (= (set-diff k j) (set-empty)))
      ((spans v p t)) :ruleset online)
(rule ((candidate v p) (reduction v t op k x) (statistic p id) (= s (reads t)) (set-contains s id))
      ((open v p)) :ruleset online)
(rule ((open v p) (reduction v t op k x) (= a (axes p)) (= (set-length (set-intersect a k)) 0))
      ((inner v p)) :ruleset online)
(rule ((spans v p t) (= a (axes p)) (= b (axes t)) (= (set-diff a b) (set-empty)))
      ((encloses v p)) :ruleset online)
(rule ((repair v p kind)) ((repairable p)) :ruleset online)
"""


def _rule(name: str, doc: str, text: str) -> Rule:
    return Rule(name, doc, "online", text)


FORMS = (
    _rule(
        "form-statistic",
        "P → 0 + 1·P, 1·P^1",
        '(rule ((statistic p id)) ((shift p p 1.0) (scale p p "power" 0.0 1.0)))',
    ),
    _rule(
        "form-sum",
        "x + y, x - y, y - x, -x of a shift x, with y independent of P or a shift too → a shift",
        """
        (rule ((binary t "add" x y) (shift x p c) (statistic p id) (= s (reads y)) (set-not-contains s id))
              ((shift t p c)))
        (rule ((binary t "add" y x) (shift x p c) (statistic p id) (= s (reads y)) (set-not-contains s id))
              ((shift t p c)))
        (rule ((binary t "sub" x y) (shift x p c) (statistic p id) (= s (reads y)) (set-not-contains s id))
              ((shift t p c)))
        (rule ((binary t "sub" y x) (shift x p c) (statistic p id) (= s (reads y)) (set-not-contains s id))
              ((shift t p (* -1.0 c))))
        (rule ((binary t "add" x y) (shift x p c) (shift y p d)) ((shift t p (+ c d))))
        (rule ((binary t "sub" x y) (shift x p c) (shift y p d)) ((shift t p (- c d))))
        (rule ((unary t "sub" x) (shift x p c)) ((shift t p (* -1.0 c))))
        """,
    ),
    _rule(
        "form-multiple",
        "c·x, x·c, x/c of a shift x, c a number → a shift",
        """
        (rule ((binary t "mul" x y) (shift x p c) (number y d)) ((shift t p (* c d))))
        (rule ((binary t "mul" y x) (shift x p c) (number y d)) ((shift t p (* c d))))
        (rule ((binary t "div" x y) (shift x p c) (number y d) (!= d 0.0)) ((shift t p (/ c d))))
        """,
    ),
    _rule(
        "form-along",
        "v, P and what has P's axes alone; x + y, x - y, -x, +x, c·x, x·c, x/c of these → a·v + c·P + B",
        """
        (relation taken (Term Term))
        (rule ((statistic p id) (reduction w p op j v) (extremum op) (= s (reads v)) (set-not-contains s id))
              ((taken p v) (along v p v 1.0 0.0) (along p p v 0.0 1.0)))
        (rule ((taken p v) (statistic p id) (= s (reads t)) (set-not-contains s id) (= a (axes t)) (= b (axes p))
               (= (set-diff a b) (set-empty)))
              ((along t p v 0.0 0.0)))
        (rule ((binary t "add" x y) (along x p v a c) (along y p v b d)) ((along t p v (+ a b) (+ c d))))
        (rule ((binary t "sub" x y) (along x p v a c) (along y p v b d)) ((along t p v (- a b) (- c d))))
        (rule ((unary t "sub" x) (along x p v a c)) ((along t p v (* -1.0 a) (* -1.0 c))))
        (rule ((unary t op x) (copies op) (along x p v a c)) ((along t p v a c)))
        (rule ((binary t "mul" x y) (along x p v a c) (number y d)) ((along t p v (* a d) (* c d))))
        (rule ((binary t "mul" y x) (along x p v a c) (number y d)) ((along t p v (* a d) (* c d))))
        (rule ((binary t "div" x y) (along x p v a c) (number y d) (!= d 0.0)) ((along t p v (/ a d) (/ c d))))
        """,
    ),
    _rule(
        "form-capped",
        "a·(v - P) + B → at most B if a > 0 and P a maximum, or a < 0 and P a minimum; else at least B",
        """
        (rule ((along t p v a c) (maximum p) (< c 0.0) (= a (* -1.0 c))) ((capped t p c)))
        (rule ((along t p v a c) (minimum p) (> c 0.0) (= a (* -1.0 c))) ((capped t p c)))
        (rule ((along t p v a c) (maximum p) (> c 0.0) (= a (* -1.0 c))) ((floored t p c)))
        (rule ((along t p v a c) (minimum p) (< c 0.0) (= a (* -1.0 c))) ((floored t p c)))
        """,
    ),
    _rule(
        "form-exponential",
        "b^x of a capped x, b a number > 1 → a scale b^(c·P), or (1/b)^(-c·P) of a floored x for 0 < b < 1",
        f"""
        (rule ((unary t "pow" x) (capped x p c)) ((scale t p "max-shift" {math.e!r} c)))
        (rule ((binary t "pow" y x) (capped x p c) (number y b) (> b 1.0)) ((scale t p "max-shift" b c)))
        (rule ((binary t "pow" y x) (floored x p c) (number y b) (> b 0.0) (< b 1.0))
              ((scale t p "max-shift" (/ 1.0 b) (* -1.0 c))))
        """,
    ),
    _rule(
        "form-product",
        "x·y, x/y, -x of a scale x, with y independent of P or a scale of the same kind; y/x, 1/x of a power → a scale",
        """
        (rule ((binary t "mul" x y) (scale x p f b c) (statistic p id) (= s (reads y)) (set-not-contains s id))
              ((scale t p f b c)))
        (rule ((binary t "mul" y x) (scale x p f b c) (statistic p id) (= s (reads y)) (set-not-contains s id))
              ((scale t p f b c)))
        (rule ((binary t "div" x y) (scale x p f b c) (statistic p id) (= s (reads y)) (set-not-contains s id))
              ((scale t p f b c)))
        (rule ((binary t "div" y x) (scale x p "power" b c) (statistic p id) (= s (reads y)) (set-not-contains s id))
              ((scale t p "power" b (* -1.0 c))))
        (rule ((binary t "mul" x y) (scale x p f b c) (scale y p f b d)) ((scale t p f b (+ c d))))
        (rule ((binary t "div" x y) (scale x p "power" b c) (scale y p "power" b d)) ((scale t p "power" b (- c d))))
        (rule ((unary t "div" x) (scale x p "power" b c)) ((scale t p "power" b (* -1.0 c))))
        (rule ((unary t "sub" x) (scale x p f b c)) ((scale t p f b c)))
        """,
    ),
    _rule(
        "form-common-factor",
        "x + y, x - y of two scales with the same factor → that scale",
        """
        (rule ((binary t "add" x y) (scale x p f b c) (scale y p f b c)) ((scale t p f b c)))
        (rule ((binary t "sub" x y) (scale x p f b c) (scale y p f b c)) ((scale t p f b c)))
        """,
    ),
    _rule(
        "form-copy",
        "+x → the form of x",
        """
        (rule ((unary t op x) (copies op) (shift x p c)) ((shift t p c)))
        (rule ((unary t op x) (copies op) (scale x p f b c)) ((scale t p f b c)))
        """,
    ),
    _rule(
        "form-inner-reduction",
        "⊕_K x over axes that P lacks and that leave P unfinished → the form of x, if it distributes over ⊕",
        """
        (rule ((inner v p) (reduction v t "add" k x) (scale x p f b c)) ((scale t p f b c)))
        (rule ((inner v p) (reduction v t op k x) (extremum op) (scale x p f b c) (!= f "power")) ((scale t p f b c)))
        (rule ((inner v p) (reduction v t op k x) (extremum op) (shift x p c)) ((shift t p c)))
        """,
    ),
)

REPAIRS = (
    _rule(
        "repair-sum",
        "Σ_J x, x a scale in P, P's axes all in the sum's → repaired by φ(P')/φ(P), which is at most 1 for a power",
        """
        (rule ((encloses v p) (reduction v t "add" j x) (scale x p "max-shift" b c)) ((repair v p "max-shift")))
        (rule ((encloses v p) (reduction v t "add" j x) (scale x p "power" b c) (< c 0.0)) ((repair v p "divisor")))
        (rule ((encloses v p) (reduction v t "add" j x) (scale x p "power" b c) (>= c 0.0)) ((repair v p "scale")))
        """,
    ),
    _rule(
        "repair-extremum",
        "max_J x and min_J x, x a shift in P, or a scale by a power of it → repaired by adding, or by at most 1",
        """
        (rule ((encloses v p) (reduction v t op j x) (extremum op) (shift x p c)) ((repair v p "shift")))
        (rule ((encloses v p) (reduction v t op j x) (extremum op) (scale x p "max-shift" b c))
              ((repair v p "max-shift")))
        """,
    ),
)
