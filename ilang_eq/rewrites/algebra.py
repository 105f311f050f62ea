"""The algebra: rules whose two sides compute the same value, as unions.

Named axes make permutations unnecessary: a product is a product, whatever the layout of its factors. What keeps the
e-graph small is demand. Products and quotients are regrouped only where they are summed, and only by one question at a
time: which factors have an axis in a set S? Per S a product then has one grouping, r·x or x/d with everything free of S
in r or d, and not one per bracketing: a chain of n factors stays linear in n. Matrix chains, which need more, have a
rule of their own.

The demand marks, kept by ``CONTEXT``:

    (grouped t S)         t is a factor or a numerator under Σ_J, and has an axis in S, where S is J or a single axis
    (pure t S)            no factor or divisor of t is free of S
    (factored t S r x)    t = r·x with r free of S and x pure
    (quotient t S x d)    t = x/d with d free of S and x pure
    (contraction t J a b) t = Σ_J a·b with axes of J in both a and b
    (scaled t)            t goes into a function of one argument
    (nonnegative t)       t is not below zero; it may be NaN
"""

from __future__ import annotations

from itertools import product

from ilang_eq.rewrites.rules import Rule, Tier

CONTEXT = """
(relation grouped (Term Axes))
(relation pure (Term Axes))
(relation factored (Term Axes Term Term))
(relation quotient (Term Axes Term Term))
(relation contraction (Term Axes Term Term))
(relation scaled (Term))
(relation nonnegative (Term))
(relation keeps-sign (String))
(keeps-sign "add") (keeps-sign "mul") (keeps-sign "div") (keeps-sign "max") (keeps-sign "min")

(rule ((= t (Red "add" j x))) ((grouped x j)) :ruleset analysis)
(rule ((= t (Red "add" j x)) (= a (axes x)) (axis i) (set-contains a i)) ((grouped x (set-of i))) :ruleset analysis)
(rule ((grouped t s) (= t (Bin "mul" a b)) (= x (axes a)) (> (set-length (set-intersect x s)) 0))
      ((grouped a s)) :ruleset analysis)
(rule ((grouped t s) (= t (Bin "mul" a b)) (= y (axes b)) (> (set-length (set-intersect y s)) 0))
      ((grouped b s)) :ruleset analysis)
(rule ((grouped t s) (= t (Bin "div" a d)) (= x (axes a)) (> (set-length (set-intersect x s)) 0))
      ((grouped a s)) :ruleset analysis)

(rule ((grouped t s) (= t (Read n d))) ((pure t s)) :ruleset analysis)
(rule ((grouped t s) (= t (View x d e))) ((pure t s)) :ruleset analysis)
(rule ((grouped t s) (= t (Un op x))) ((pure t s)) :ruleset analysis)
(rule ((grouped t s) (= t (Red op j x))) ((pure t s)) :ruleset analysis)
(rule ((grouped t s) (= t (Bin op x y)) (!= op "mul") (!= op "div")) ((pure t s)) :ruleset analysis)
(rule ((grouped t s) (= t (Bin "mul" x y)) (pure x s) (pure y s)) ((pure t s)) :ruleset analysis)
(rule ((grouped t s) (= t (Bin "div" x y)) (pure x s) (= b (axes y)) (> (set-length (set-intersect b s)) 0))
      ((pure t s)) :ruleset analysis)
(rule ((grouped t s) (= t (Bin "div" x y)) (= a (axes x)) (= (set-length (set-intersect a s)) 0))
      ((pure t s)) :ruleset analysis)

(rule ((grouped t s) (= t (Bin "mul" r x)) (pure x s) (= a (axes r)) (= (set-length (set-intersect a s)) 0))
      ((factored t s r x)) :ruleset analysis)
(rule ((grouped t s) (= t (Bin "div" x d)) (pure x s) (= a (axes d)) (= (set-length (set-intersect a s)) 0))
      ((quotient t s x d)) :ruleset analysis)
(rule ((= t (Red "add" j m)) (= m (Bin "mul" a b)) (= x (axes a)) (> (set-length (set-intersect x j)) 0)
       (= y (axes b)) (> (set-length (set-intersect y j)) 0))
      ((contraction t j a b)) :ruleset analysis)
(rule ((= t (Un op x))) ((scaled x)) :ruleset analysis)

(rule ((= t (Num x)) (>= x 0.0)) ((nonnegative t)) :ruleset analysis)
(rule ((= t (Un "pow" x))) ((nonnegative t)) :ruleset analysis)
(rule ((= t (Bin "mul" x x))) ((nonnegative t)) :ruleset analysis)
(rule ((= t (Bin "pow" x (Num 2.0)))) ((nonnegative t)) :ruleset analysis)
(rule ((= t (Bin "pow" x y)) (nonnegative x)) ((nonnegative t)) :ruleset analysis)
(rule ((= t (Bin op x y)) (keeps-sign op) (nonnegative x) (nonnegative y)) ((nonnegative t)) :ruleset analysis)
(rule ((= t (Red op j x)) (keeps-sign op) (!= op "max") (nonnegative x)) ((nonnegative t)) :ruleset analysis)
"""


def _rule(tier: Tier, name: str, doc: str, text: str) -> Rule:
    return Rule(name, doc, "algebra", text, tier)


def _split_total(op: str) -> str:
    """A reduction to a single number by ``op``, one axis before the others."""
    return f"""
        (rule ((= t (Red "{op}" j x)) (= j (axes x)) (> (set-length j) 1) (axis k) (set-contains j k))
              ((union t (Red "{op}" (set-remove j k) (Red "{op}" (set-of k) x)))))
        """


def _merged_numbers(inner: str, outer: str) -> str:
    """One number for two that follow each other."""
    op = "div" if inner == outer == "div" else "mul"
    number = "(* a b)" if inner == outer else "(/ b a)" if inner == "div" else "(/ a b)"
    return f"""
        (rule ((scaled t) (= t (Bin "{outer}" (Bin "{inner}" x (Num a)) (Num b))) (= c {number})
               (> (abs c) 1e-30) (< (abs c) 1e30))
              ((union t (Bin "{op}" x (Num c)))))"""


EXACT = (
    _rule(
        "exact",
        "commute",
        "x ∘ y → y ∘ x, for ∘ in + * max min",
        """
        (rewrite (Bin "add" x y) (Bin "add" y x))
        (rewrite (Bin "mul" x y) (Bin "mul" y x))
        (rewrite (Bin "max" x y) (Bin "max" y x))
        (rewrite (Bin "min" x y) (Bin "min" y x))
        """,
    ),
    _rule(
        "exact",
        "eliminate-copy",
        "+x → x, a copy under other axis letters or in another layout",
        """
        (rewrite (Un "add" x) x)
        (rewrite (Un "mul" x) x)
        (rewrite (Un "max" x) x)
        (rewrite (Un "min" x) x)
        """,
    ),
    _rule("exact", "double-negation", "-(-x) → x", '(rewrite (Un "sub" (Un "sub" x)) x)'),
    _rule("exact", "negate-difference", "-(x - y) → y - x", '(rewrite (Un "sub" (Bin "sub" x y)) (Bin "sub" y x))'),
    _rule(
        "exact",
        "unit",
        "x·1 → x, x/1 → x",
        """
        (rewrite (Bin "mul" x (Num 1.0)) x)
        (rewrite (Bin "mul" (Num 1.0) x) x)
        (rewrite (Bin "div" x (Num 1.0)) x)
        """,
    ),
    _rule(
        "exact",
        "merge-extrema",
        "max_J max_K x → max_{J∪K} x, and for min",
        """
        (rewrite (Red "max" j (Red "max" k x)) (Red "max" (set-union j k) x))
        (rewrite (Red "min" j (Red "min" k x)) (Red "min" (set-union j k) x))
        """,
    ),
    _rule(
        "exact",
        "split-extremum",
        "max_{J∪K} (b + x) → max_J max_K (b + x) with b free of K, and for min: K can then pass b by",
        """
        (rule ((= t (Red "max" j m)) (= m (Bin "add" b x)) (= a (axes b))
               (!= (set-diff j a) j) (!= (set-diff j a) (set-empty)))
              ((union t (Red "max" (set-intersect j a) (Red "max" (set-diff j a) m)))))
        (rule ((= t (Red "min" j m)) (= m (Bin "add" b x)) (= a (axes b))
               (!= (set-diff j a) j) (!= (set-diff j a) (set-empty)))
              ((union t (Red "min" (set-intersect j a) (Red "min" (set-diff j a) m)))))
        """,
    ),
    _rule(
        "exact",
        "split-total-extremum",
        "max_{J∪K} x → max_J max_K x if no axis is left, K one axis, and for min: partial results are then of rows",
        "\n".join(_split_total(op) for op in ("max", "min")),
    ),
    _rule(
        "exact",
        "scale-extremum",
        "max_J (c·x) → c·max_J x and max_J (x/c) → (max_J x)/c for a number c > 0, and for min",
        """
        (rewrite (Red "max" j (Bin "mul" (Num c) x)) (Bin "mul" (Num c) (Red "max" j x)) :when ((> c 0.0)))
        (rewrite (Red "min" j (Bin "mul" (Num c) x)) (Bin "mul" (Num c) (Red "min" j x)) :when ((> c 0.0)))
        (rewrite (Red "max" j (Bin "div" x (Num c))) (Bin "div" (Red "max" j x) (Num c)) :when ((> c 0.0)))
        (rewrite (Red "min" j (Bin "div" x (Num c))) (Bin "div" (Red "min" j x) (Num c)) :when ((> c 0.0)))
        """,
    ),
    _rule(
        "exact",
        "negate-reduction",
        "max_J (-x) → -min_J x, min_J (-x) → -max_J x, Σ_J (-x) → -Σ_J x",
        """
        (rewrite (Red "max" j (Un "sub" x)) (Un "sub" (Red "min" j x)))
        (rewrite (Red "min" j (Un "sub" x)) (Un "sub" (Red "max" j x)))
        (rewrite (Red "add" j (Un "sub" x)) (Un "sub" (Red "add" j x)))
        """,
    ),
)

REASSOCIATING = (
    _rule(
        "reassociating",
        "shift-extremum",
        "max_J (x + b) → max_J x + b, max_J (x - b) → max_J x - b, max_J (b - x) → b - min_J x with b free of J;"
        " a b that is NaN is skipped on the left, passed on on the right",
        """
        (rule ((= t (Red "max" j (Bin "add" x b))) (= a (axes b)) (= (set-length (set-intersect a j)) 0))
              ((union t (Bin "add" (Red "max" j x) b))))
        (rule ((= t (Red "min" j (Bin "add" x b))) (= a (axes b)) (= (set-length (set-intersect a j)) 0))
              ((union t (Bin "add" (Red "min" j x) b))))
        (rule ((= t (Red "max" j (Bin "sub" x b))) (= a (axes b)) (= (set-length (set-intersect a j)) 0))
              ((union t (Bin "sub" (Red "max" j x) b))))
        (rule ((= t (Red "min" j (Bin "sub" x b))) (= a (axes b)) (= (set-length (set-intersect a j)) 0))
              ((union t (Bin "sub" (Red "min" j x) b))))
        (rule ((= t (Red "max" j (Bin "sub" b x))) (= a (axes b)) (= (set-length (set-intersect a j)) 0))
              ((union t (Bin "sub" b (Red "min" j x)))))
        (rule ((= t (Red "min" j (Bin "sub" b x))) (= a (axes b)) (= (set-length (set-intersect a j)) 0))
              ((union t (Bin "sub" b (Red "max" j x)))))
        """,
    ),
    _rule(
        "reassociating",
        "minimum-of-increasing",
        "min_J f(x) → f(min_J x) for f = e^x, and f = ln x or x^p with p > 0 if x ≥ 0; no max, which is -inf of none",
        """
        (rewrite (Red "min" j (Un "pow" x)) (Un "pow" (Red "min" j x)))
        (rule ((= t (Red "min" j (Un "log" x))) (nonnegative x)) ((union t (Un "log" (Red "min" j x)))))
        (rule ((= t (Red "min" j (Bin "pow" x (Num p)))) (> p 0.0) (nonnegative x))
              ((union t (Bin "pow" (Red "min" j x) (Num p)))))
        """,
    ),
    _rule(
        "reassociating",
        "merge-sums",
        "Σ_J Σ_K x → Σ_{J∪K} x, and for products",
        """
        (rewrite (Red "add" j (Red "add" k x)) (Red "add" (set-union j k) x))
        (rewrite (Red "mul" j (Red "mul" k x)) (Red "mul" (set-union j k) x))
        """,
    ),
    _rule(
        "reassociating",
        "split-sum",
        "Σ_{J∪K} r·x → Σ_J Σ_K r·x with r free of K: r can then leave the inner sum",
        """
        (rule ((= t (Red "add" j m)) (= m (Bin "mul" r x)) (= a (axes r))
               (!= (set-diff j a) j) (!= (set-diff j a) (set-empty)))
              ((union t (Red "add" (set-intersect j a) (Red "add" (set-diff j a) m)))))
        """,
    ),
    _rule(
        "reassociating",
        "split-total",
        "Σ_{J∪K} x → Σ_J Σ_K x if no axis is left, K one axis, and for products: partial results are then of rows",
        "\n".join(_split_total(op) for op in ("add", "mul")),
    ),
    _rule(
        "reassociating",
        "hoist-product",
        "Σ_J r·x → r·Σ_J x with r free of J",
        """
        (rule ((= t (Red "add" j (Bin "mul" r x))) (= a (axes r)) (= (set-length (set-intersect a j)) 0))
              ((union t (Bin "mul" r (Red "add" j x)))))
        """,
    ),
    _rule(
        "reassociating",
        "hoist-division",
        "Σ_J x/d → (Σ_J x)/d with d free of J",
        """
        (rule ((= t (Red "add" j (Bin "div" x d))) (= a (axes d)) (= (set-length (set-intersect a j)) 0))
              ((union t (Bin "div" (Red "add" j x) d))))
        """,
    ),
    _rule(
        "reassociating",
        "defer-division",
        "(x/d)·b → (x·b)/d, (x/d)/e → (x/e)/d inside a sum, d free of S, b and e not",
        """
        (rule ((grouped t s) (= t (Bin "mul" u b)) (quotient u s x d) (= a (axes b))
               (> (set-length (set-intersect a s)) 0))
              ((union t (Bin "div" (Bin "mul" x b) d))))
        (rule ((grouped t s) (= t (Bin "div" u e)) (quotient u s x d) (= a (axes e))
               (> (set-length (set-intersect a s)) 0))
              ((union t (Bin "div" (Bin "div" x e) d))))
        """,
    ),
    _rule(
        "reassociating",
        "merge-divisions",
        "(x/d)/e → x/(d·e) inside a sum, d and e free of S",
        """
        (rule ((grouped t s) (= t (Bin "div" u e)) (quotient u s x d) (= a (axes e))
               (= (set-length (set-intersect a s)) 0))
              ((union t (Bin "div" x (Bin "mul" d e)))))
        """,
    ),
    _rule(
        "reassociating",
        "regroup-product",
        "(r·x)·b → (r·b)·x if b is free of S, else r·(x·b); inside a sum, r free of S",
        """
        (rule ((grouped t s) (= t (Bin "mul" u b)) (factored u s r x) (= a (axes b))
               (= (set-length (set-intersect a s)) 0))
              ((union t (Bin "mul" (Bin "mul" r b) x))))
        (rule ((grouped t s) (= t (Bin "mul" u b)) (factored u s r x) (= a (axes b))
               (> (set-length (set-intersect a s)) 0))
              ((union t (Bin "mul" r (Bin "mul" x b)))))
        """,
    ),
    _rule(
        "reassociating",
        "regroup-quotient",
        "(r·x)/e → (r/e)·x if e is free of S, else r·(x/e); (x/d)·b → (b/d)·x with d and b free of S; inside a sum",
        """
        (rule ((grouped t s) (= t (Bin "div" u e)) (factored u s r x) (= a (axes e))
               (= (set-length (set-intersect a s)) 0))
              ((union t (Bin "mul" (Bin "div" r e) x))))
        (rule ((grouped t s) (= t (Bin "div" u e)) (factored u s r x) (= a (axes e))
               (> (set-length (set-intersect a s)) 0))
              ((union t (Bin "mul" r (Bin "div" x e)))))
        (rule ((grouped t s) (= t (Bin "mul" u b)) (quotient u s x d) (= a (axes b))
               (= (set-length (set-intersect a s)) 0))
              ((union t (Bin "mul" (Bin "div" b d) x))))
        """,
    ),
    _rule(
        "reassociating",
        "sink-product",
        "r·Σ_J x → Σ_J r·x for a scalar r: it can then scale a smaller factor of x",
        """
        (rule ((= t (Bin "mul" r (Red "add" j x))) (= (axes r) (set-empty)))
              ((union t (Red "add" j (Bin "mul" r x)))))
        """,
    ),
    _rule(
        "reassociating",
        "sink-division",
        "(Σ_J x)/d → Σ_J x/d with d free of J and no axes of its own",
        """
        (rule ((= t (Bin "div" (Red "add" j x) d)) (= y (Red "add" j x)) (= a (axes d)) (= b (axes y))
               (= (set-union a b) b) (= (set-length (set-intersect a j)) 0))
              ((union t (Red "add" j (Bin "div" x d)))))
        """,
    ),
    _rule(
        "reassociating",
        "associate-contraction",
        "Σ_K (Σ_J a·b)·c → Σ_J a·(Σ_K b·c) with a free of K and c free of J: matrix chains",
        """
        (rule ((contraction t k u c) (contraction u j a b) (= x (axes a)) (= (set-length (set-intersect x k)) 0)
               (= y (axes c)) (= (set-length (set-intersect y j)) 0))
              ((union t (Red "add" j (Bin "mul" a (Red "add" k (Bin "mul" b c)))))))
        """,
    ),
    _rule(
        "reassociating",
        "multiply-by-reciprocal",
        "x·(1/d) → x/d",
        """
        (rewrite (Bin "mul" x (Un "div" d)) (Bin "div" x d))
        (rewrite (Bin "mul" x (Bin "div" (Num 1.0) d)) (Bin "div" x d))
        """,
    ),
    _rule(
        "reassociating",
        "merge-numbers",
        "(x·a)·b → x·(a·b), (x/a)·b → x·(b/a), (x·a)/b → x·(a/b), (x/a)/b → x/(a·b) for numbers a and b,"
        " under a function of one argument, if the new number is neither tiny nor huge",
        "\n".join(_merged_numbers(*ops) for ops in product(("mul", "div"), repeat=2)),
    ),
    _rule(
        "reassociating",
        "scale-difference",
        "(a - b/x)·c → a·c - (b·c)/x for numbers a, b and c, under a function of one argument, if neither new number is"
        " tiny or huge: what a hyperbolic tangent is multiplied by costs nothing",
        """
        (rule ((scaled t) (= t (Bin "mul" (Bin "sub" (Num a) (Bin "div" (Num b) x)) (Num c)))
               (= d (* a c)) (> (abs d) 1e-30) (< (abs d) 1e30) (= e (* b c)) (> (abs e) 1e-30) (< (abs e) 1e30))
              ((union t (Bin "sub" (Num d) (Bin "div" (Num e) x)))))
        """,
    ),
    _rule("reassociating", "square", "x^2 → x·x", '(rewrite (Bin "pow" x (Num 2.0)) (Bin "mul" x x))'),
)

RISKY = (
    _rule(
        "risky",
        "distribute-sum",
        "Σ_J (x ± y) → Σ_J x ± Σ_J y, where x and y both have all of J: digits may cancel",
        """
        (rule ((= t (Red "add" j (Bin "add" x y))) (= a (axes x)) (= (set-diff j a) (set-empty))
               (= b (axes y)) (= (set-diff j b) (set-empty)))
              ((union t (Bin "add" (Red "add" j x) (Red "add" j y)))))
        (rule ((= t (Red "add" j (Bin "sub" x y))) (= a (axes x)) (= (set-diff j a) (set-empty))
               (= b (axes y)) (= (set-diff j b) (set-empty)))
              ((union t (Bin "sub" (Red "add" j x) (Red "add" j y)))))
        """,
    ),
    _rule(
        "risky",
        "expand-square",
        "Σ_J (x - y)·(x - y) → (Σ_J x·x + Σ_J y·y) - 2·Σ_J x·y, both with all of J: digits cancel where x ≈ y",
        """
        (rule ((= t (Red "add" j (Bin "mul" d d))) (= d (Bin "sub" x y)) (= a (axes x)) (= (set-diff j a) (set-empty))
               (= b (axes y)) (= (set-diff j b) (set-empty)))
              ((union t (Bin "sub" (Bin "add" (Red "add" j (Bin "mul" x x)) (Red "add" j (Bin "mul" y y)))
                                   (Bin "mul" (Num 2.0) (Red "add" j (Bin "mul" x y)))))))
        """,
    ),
    _rule(
        "risky",
        "exp-of-sum",
        "e^(x + y) → e^x·e^y, e^(x - y) → e^x/e^y: a factor may overflow",
        """
        (rewrite (Un "pow" (Bin "add" x y)) (Bin "mul" (Un "pow" x) (Un "pow" y)))
        (rewrite (Un "pow" (Bin "sub" x y)) (Bin "div" (Un "pow" x) (Un "pow" y)))
        """,
    ),
    _rule(
        "risky",
        "exp-of-log",
        "e^(ln x) → x for x > 0, ln(e^x) → x",
        """
        (rewrite (Un "pow" (Un "log" x)) x)
        (rewrite (Un "log" (Un "pow" x)) x)
        """,
    ),
    _rule(
        "risky",
        "cancel",
        "(x·y)/y → x, where y has no axes of its own: wrong at y = 0",
        """
        (rule ((= t (Bin "div" (Bin "mul" x y) y)) (= a (axes x)) (= b (axes y)) (= (set-union a b) a))
              ((union t x)))
        """,
    ),
)
