"""Schedules: nests as equal computations, grown by rule; staging as facts about two of them.

A nest lists the outer (tile) loops of a variant from the outside in; all its element loops follow inside. It computes
what the variant does, so ``(Nest v n)`` is an e-node of the variant's own class. Nests are kept few by two rules of
dominance:

  * an axis of every variant and every input, scalars aside, is a batch axis: its iterations share nothing, so a loop
    over it belongs outside everything that shares something, and two such loops commute. A nest has all of them,
    outermost and in order, or no loop at all, and nothing is staged between them. Columns of an input that is reduced
    across its rows are none: their iterations share pages (``facts.batch_axes``).
  * beyond those a nest has at most ``DEPTH`` loops; an axis not among them is one tile.

Whether a producer may be computed inside a consumer's loops depends on two nests, so it is a fact. Inside the first
``s`` loops of the consumer it recomputes nothing and runs in step if those are also the first ``s`` of the producer.
If the producer still reduces over one of them, its value is unfinished there: then only an online repair helps.

    (needs c k t n s m)   variant c under nest n would read operand k, class t, at site s, inside the loops m
    (provides t p n m)    variant p under nest n computes class t inside the loops m, finished
    (partial t p n m)     the same, still reducing over some of m
    (staged c n k s p q)  p under nest q may be computed at site s of c under n
    (inlined c n k p q)   ... or inside c's element loops
    (aligned c k p)       p computes operand k of c and runs over the same axes
"""

from __future__ import annotations

from ilang_eq.rewrites.rules import Phase, Rule

DEPTH = 3
"""The longest nest, batch axes aside."""

ANALYSIS = "signatures"
"""The ruleset that lists what every nest provides and needs; saturated before staging."""

DECLARATIONS = f"""
(constructor Nest (i64 Dims) Term)
(relation grown (i64 Dims i64))
(relation place (i64))
(relation prefix (Dims Dims))
(relation listed (Dims))
(function members (Dims) Axes :no-merge)
(relation needs (i64 i64 Term Dims i64 Dims))
(relation provides (Term i64 Dims Dims))
(relation partial (Term i64 Dims Dims))
(relation repairable (Term))
(relation aligned (i64 i64 i64))
(relation staged (i64 Dims i64 i64 i64 Dims))
(relation inlined (i64 Dims i64 i64 Dims))

{" ".join(f"(place {n})" for n in range(26))}
(set (members (vec-empty)) (set-empty))

(rule ((variant v t)) ((union t (Nest v (vec-empty)))) :ruleset nests)

(rule ((= t (Nest v n)) (> (vec-length n) 0)) ((prefix n n) (listed n)) :ruleset signatures)
(rule ((prefix n m) (batch b) (> (vec-length m) (max 1 (vec-length b)))) ((prefix n (vec-pop m))) :ruleset signatures)
(rule ((listed n) (> (vec-length n) 1)) ((listed (vec-pop n))) :ruleset signatures)
(rule ((listed n) (= s (members (vec-pop n))))
      ((set (members n) (set-insert s (vec-get n (- (vec-length n) 1))))) :ruleset signatures)
(rule ((operand c k t) (= u (Nest c n)) (prefix n m)) ((needs c k t n (vec-length m) m)) :ruleset signatures)
(rule ((= t (Nest p n)) (prefix n m) (reduced p j) (= s (members m))
       (= (set-length (set-intersect j s)) 0))
      ((provides t p n m)) :ruleset signatures)
(rule ((= t (Nest p n)) (prefix n m) (reduced p j) (= s (members m))
       (> (set-length (set-intersect j s)) 0))
      ((partial t p n m)) :ruleset signatures)
(rule ((operand c k t) (variant p t) (loops c a) (loops p a)) ((aligned c k p)) :ruleset signatures)
"""


def _rule(phase: Phase, name: str, doc: str, text: str) -> Rule:
    return Rule(name, doc, phase, text)


NESTS = (
    _rule(
        "nests",
        "split",
        "n → n a: one more tile loop, over an axis of the variant; tile sizes stay symbolic",
        f"""
        (rule ((batch b) (> (vec-length b) 0) (= a (vec-get b 0)) (loop v a) (variant v t))
              ((union t (Nest v b)) (grown v b -1)))
        (rule ((batch (vec-empty)) (variant v t)) ((grown v (vec-empty) -1)))
        (rule ((grown v n last) (loop v a) (> a last) (batch b) (vec-not-contains b a)
               (< (vec-length n) (+ (vec-length b) {DEPTH})) (variant v t))
              ((union t (Nest v (vec-push n a))) (grown v (vec-push n a) a)))
        """,
    ),
    _rule(
        "nests",
        "interchange",
        "… a b … → … b a …: two neighbouring tile loops swap, batch axes excepted",
        """
        (rule ((= t (Nest v n)) (place p) (batch b) (>= p (vec-length b)) (< (+ p 1) (vec-length n)))
              ((union t (Nest v (vec-set (vec-set n p (vec-get n (+ p 1))) (+ p 1) (vec-get n p))))))
        """,
    ),
)

STAGING = (
    _rule(
        "staging",
        "stage",
        "a producer whose first loops are the consumer's loops above the site, and which is finished there → staged",
        """
        (rule ((needs c k t n s m) (provides t p q m)) ((staged c n k s p q)))
        """,
    ),
    _rule(
        "staging",
        "stage-online",
        "the same for one still reducing over those loops, if a repair corrects for it → staged",
        """
        (rule ((needs c k t n s m) (partial t p q m) (repairable t)) ((staged c n k s p q)))
        """,
    ),
    _rule(
        "staging",
        "inline",
        "a pointwise producer with the consumer's axes and nest → computed inside its element loops",
        """
        (rule ((aligned c k p) (pointwise p) (= u (Nest c n)) (= t (Nest p n))) ((inlined c n k p n)))
        """,
    ),
)
