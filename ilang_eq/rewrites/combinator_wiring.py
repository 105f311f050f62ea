"""Wiring by rule: a component applied to values becomes calls of its leaves, over lists that know left-over wires.

``(Apply f xs)`` is the list of what f returns for the list xs. ``Take`` and ``Drop`` stop at a list's end, which is all
that mixed arity needs: f >> g feeds g what f returned, up to what g takes, then what f left of xs. Rewriting ends: each
combinator adds a few lists, no longer than the wires that pass it. Roots are applied to their own ``Inputs``; two
components that return the same calls there are equal.
"""

from __future__ import annotations

import math
import sys

from ilang_eq.lang.component import Component, Leaf
from ilang_eq.lang.expr import Access, Expr
from ilang_eq.lang.graph import Graph, Input, Node, Value, Wire
from ilang_eq.rewrites.combinator_terms import ARITY, Encoder, new_engine
from ilang_eq.rewrites.engine import Cell, Limits, Row
from ilang_eq.rewrites.rules import Rule, RuleSet


def _rule(name: str, doc: str, text: str) -> Rule:
    return Rule(name, doc, "combinators", text)


_LISTS = (
    _rule(
        "list-inputs",
        "Inputs(k, n) → In(k), …, In(n − 1)",
        "(rewrite (Inputs n n) (Nil)) (rewrite (Inputs k n) (Cons (In k) (Inputs (+ k 1) n)) :when ((< k n)))",
    ),
    _rule(
        "list-take",
        "Take(n, xs) → the first n of xs, or all",
        """(rewrite (Take n (Nil)) (Nil))
           (rewrite (Take 0 (Cons x xs)) (Nil))
           (rewrite (Take n (Cons x xs)) (Cons x (Take (- n 1) xs)) :when ((> n 0)))""",
    ),
    _rule(
        "list-drop",
        "Drop(n, xs) → xs without its first n, or nothing",
        """(rewrite (Drop n (Nil)) (Nil))
           (rewrite (Drop 0 (Cons x xs)) (Cons x xs))
           (rewrite (Drop n (Cons x xs)) (Drop (- n 1) xs) :when ((> n 0)))""",
    ),
    _rule(
        "list-append",
        "Append(xs, ys) → xs, then ys",
        "(rewrite (Append (Nil) ys) ys) (rewrite (Append (Cons x xs) ys) (Cons x (Append xs ys)))",
    ),
)

_APPLY = (
    _rule(
        "apply-root",
        "root f → Apply(f, Inputs)",
        "(rule ((root n f) (= count (inputs f))) ((Apply f (Inputs 0 count))))",
    ),
    _rule(
        "apply-leaf",
        "Apply(leaf, xs) → Call(leaf, xs)",
        "(rule ((= zs (Apply f xs)) (= f (Leaf text n place))) ((union zs (Cons (Call f xs) (Nil)))))",
    ),
    _rule("apply-identity", "Apply(I, xs) → xs", "(rewrite (Apply (Id) xs) xs)"),
    _rule(
        "apply-swap",
        "Apply(~f, x y …) → Apply(f, y x …); fewer than two values stay",
        """(rewrite (Apply (Swap f) (Cons x (Cons y xs))) (Apply f (Cons y (Cons x xs))))
           (rewrite (Apply (Swap f) (Cons x (Nil))) (Apply f (Cons x (Nil))))
           (rewrite (Apply (Swap f) (Nil)) (Apply f (Nil)))""",
    ),
    _rule(
        "apply-pair",
        "Apply(f | g, xs) → Apply(f, first of xs), Apply(g, rest of xs)",
        "(rewrite (Apply (Pair f g) xs) (Append (Apply f (Take n xs)) (Apply g (Drop n xs))) :when ((= n (inputs f))))",
    ),
    _rule(
        "apply-fanout",
        "Apply(f & g, xs) → Apply(f, first of xs), Apply(g, first of xs)",
        """(rewrite (Apply (Fanout f g) xs) (Append (Apply f (Take n xs)) (Apply g (Take m xs)))
                    :when ((= n (inputs f)) (= m (inputs g))))""",
    ),
    _rule(
        "apply-chain",
        "Apply(f >> g, xs) → what g leaves of Apply(f, first of xs), Apply(g, what it takes of that and rest of xs)",
        """(rule ((= zs (Apply (Chain f g) xs)) (= n (inputs f)) (= m (inputs g)))
                 ((let ys (Apply f (Take n xs)))
                  (union zs (Append (Drop m ys) (Apply g (Append (Take m ys) (Drop n xs)))))))""",
    ),
    _rule(
        "apply-compose",
        "Apply(f << g, xs) → Apply(f, what it takes of Apply(g, first of xs) and rest of xs), what f leaves of that",
        """(rule ((= zs (Apply (Compose f g) xs)) (= n (inputs f)) (= m (inputs g)))
                 ((let ys (Apply g (Take m xs)))
                  (union zs (Append (Apply f (Append (Take n ys) (Drop m xs))) (Drop n ys)))))""",
    ),
    _rule(
        "wired-alike",
        "Apply(f, Inputs) = Apply(g, Inputs) → f = g",
        "(rule ((= zs (Apply f (Inputs 0 n))) (= zs (Apply g (Inputs 0 n)))) ((union f g)))",
    ),
)

WIRING = RuleSet("wiring", _LISTS + _APPLY)

_UNLIMITED = Limits(sys.maxsize, math.inf, sys.maxsize)
"""Wiring always ends, and half a graph is no graph."""


def wire_by_rules(component: Component) -> Graph:
    """What ``lang.wiring.wire`` computes, by the rules of ``WIRING``."""
    engine = new_engine()
    engine.add_rules(WIRING)
    Encoder(engine, told_apart=True).add(component)
    engine.run("combinators", _UNLIMITED, analysis=ARITY)
    tables = engine.tables(("root", "Leaf", "In", "Call", "Nil", "Cons", "Inputs", "Apply"))
    return _Reader(tables, _expressions(component)).graph(component.inputs)


def _expressions(component: Component) -> tuple[Expr, ...]:
    """The expressions of a component, from the left."""
    found: list[Expr] = []
    todo = [component]
    while todo:
        part = todo.pop()
        if isinstance(part, Leaf):
            found.append(part.expr)
        todo.extend(reversed(part.parts))
    return tuple(found)


class _Reader:
    """A graph out of the tables of a saturated e-graph."""

    def __init__(self, tables: dict[str, list[Row]], expressions: tuple[Expr, ...]) -> None:
        self._expressions = expressions
        self._tables = tables
        self._cells: dict[Cell, tuple[Cell, Cell]] = {result: (x, xs) for x, xs, result in tables["Cons"]}
        places = {leaf: place for _, _, place, leaf in tables["Leaf"]}
        self._wires: dict[Cell, Wire] = {value: Input(k) for k, value in tables["In"]}
        self._wires |= {value: Value(places[leaf]) for leaf, _, value in tables["Call"]}
        self._arguments: dict[int, Cell] = {places[leaf]: xs for leaf, xs, _ in tables["Call"]}

    def graph(self, inputs: int) -> Graph:
        """The graph of the only root, which has ``inputs`` inputs."""
        ((_, root),) = self._tables["root"]
        start = next(xs for k, n, xs in self._tables["Inputs"] if (k, n) == (0, inputs))
        results = next(result for f, xs, result in self._tables["Apply"] if (f, xs) == (root, start))
        nodes = tuple(self._node(expr, self._arguments[n]) for n, expr in enumerate(self._expressions))
        return Graph(inputs, nodes, self._list(results))

    def _node(self, expr: Expr, arguments: Cell) -> Node:
        wires = iter(self._list(arguments))
        return Node(expr, tuple(next(wires) if isinstance(o, Access) else o for o in expr.operands))

    def _list(self, values: Cell) -> tuple[Wire, ...]:
        found: list[Wire] = []
        while values in self._cells:
            value, values = self._cells[values]
            found.append(self._wires[value])
        return tuple(found)
