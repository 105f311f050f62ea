"""Components as e-graph terms: the vocabulary, its arity analysis, and the encoder.

A term is a ``Comp``: ``Leaf``, ``Id``, ``Chain``, ``Compose``, ``Fanout``, ``Pair`` or ``Swap``. A leaf is its
canonical text, so that α-renaming leaves the e-graph identical, its number of inputs, and a place: 0, unless
occurrences of one expression must be told apart.

Invariants:
  * ``inputs`` and ``outputs`` hold for every ``Comp`` class once ``arity`` is saturated; a union of two classes whose
    arities differ panics (``:no-merge``), so an unsound law cannot pass unnoticed
  * ``part`` numbers every encoded component, parts before what they make up; ``root`` marks whole ones
"""

from __future__ import annotations

from dataclasses import replace
from string import ascii_lowercase

from ilang_eq.lang.component import Component, Identity, Leaf, Swap
from ilang_eq.lang.expr import Access, Expr, Loop, Operand, OrderItem
from ilang_eq.lang.printer import print_expr
from ilang_eq.rewrites.engine import Engine

ARITY = "arity"
"""The analysis ruleset: saturate it before every iteration of a rule that has a guard."""

COMPONENTS = ("Leaf", "Id", "Chain", "Compose", "Fanout", "Pair", "Swap")
"""The constructors of ``Comp``."""

VALUES = ("In", "Call", "Nil", "Cons", "Inputs", "Take", "Drop", "Append", "Apply")
"""The constructors of ``Value`` and ``Values``."""

VOCABULARY = """
(sort Comp)
(constructor Leaf (String i64 i64) Comp)
(constructor Id () Comp)
(constructor Chain (Comp Comp) Comp)
(constructor Compose (Comp Comp) Comp)
(constructor Fanout (Comp Comp) Comp)
(constructor Pair (Comp Comp) Comp)
(constructor Swap (Comp) Comp)
(function inputs (Comp) i64 :no-merge)
(function outputs (Comp) i64 :no-merge)
(function part (i64) Comp :no-merge)
(relation root (i64 Comp))

(sort Value)
(sort Values)
(constructor In (i64) Value)
(constructor Call (Comp Values) Value)
(constructor Nil () Values)
(constructor Cons (Value Values) Values)
(constructor Inputs (i64 i64) Values)
(constructor Take (i64 Values) Values)
(constructor Drop (i64 Values) Values)
(constructor Append (Values Values) Values)
(constructor Apply (Comp Values) Values)

(ruleset arity)
(ruleset combinators)
(rule ((= c (Leaf text n place))) ((set (inputs c) n) (set (outputs c) 1)) :ruleset arity)
(rule ((= c (Id))) ((set (inputs c) 1) (set (outputs c) 1)) :ruleset arity)
(rule ((= c (Swap f)) (= n (inputs f)) (= m (outputs f))) ((set (inputs c) n) (set (outputs c) m)) :ruleset arity)
"""

_JOINED_ARITY = """
(rule ((= c ({name} f g)) (= fi (inputs f)) (= fo (outputs f)) (= gi (inputs g)) (= go (outputs g)))
      ((set (inputs c) {inputs}) (set (outputs c) {outputs})) :ruleset arity)
"""

_JOINED = (
    ("Chain", "(+ fi (- gi (min fo gi)))", "(+ go (- fo (min fo gi)))"),
    ("Compose", "(+ gi (- fi (min go fi)))", "(+ fo (- go (min go fi)))"),
    ("Fanout", "(max fi gi)", "(+ fo go)"),
    ("Pair", "(+ fi gi)", "(+ fo go)"),
)
"""The arity of each joined component, from its parts' (fi, fo) and (gi, go)."""


def new_engine() -> Engine:
    """An e-graph with the vocabulary declared and no rules but the arity analysis."""
    engine = Engine(watched=COMPONENTS + VALUES)
    engine.execute(VOCABULARY)
    for name, inputs, outputs in _JOINED:
        engine.execute(_JOINED_ARITY.format(name=name, inputs=inputs, outputs=outputs))
    return engine


class Encoder:
    """Adds components to an e-graph.

    Args:
        engine: from ``new_engine``.
        told_apart: give the n-th leaf from the left place n, so that equal expressions stay different terms.
    """

    def __init__(self, engine: Engine, *, told_apart: bool = False) -> None:
        self._engine = engine
        self._told_apart = told_apart
        self._known: dict[Component, int] = {}
        self._parts = 0

    def add(self, component: Component) -> int:
        """Insert a component as a root and return its ``part`` number. Chains may be of any length."""
        done: list[int] = []
        todo: list[tuple[Component, bool]] = [(component, False)]
        leaves = 0
        while todo:
            current, ready = todo.pop()
            if not self._told_apart and current in self._known:
                done.append(self._known[current])
            elif ready or not current.parts:
                arguments = [done.pop() for _ in current.parts][::-1]
                done.append(self._insert(current, arguments, leaves if self._told_apart else 0))
                leaves += isinstance(current, Leaf)
            else:
                todo.append((current, True))
                todo.extend((part, False) for part in reversed(current.parts))
        (number,) = done
        self._engine.execute(f"(root {number} (part {number}))")
        return number

    def _insert(self, component: Component, arguments: list[int], place: int) -> int:
        number = self._parts
        self._parts += 1
        self._engine.execute(f"(set (part {number}) {_term(component, arguments, place)})")
        self._known[component] = number
        return number


def _term(component: Component, arguments: list[int], place: int) -> str:
    match component:
        case Leaf(expr=expr):
            return f'(Leaf "{print_expr(canonical(expr))}" {component.inputs} {place})'
        case Identity():
            return "(Id)"
        case Swap():
            return f"(Swap (part {arguments[0]}))"
        case _:
            return f"({type(component).__name__} (part {arguments[0]}) (part {arguments[1]}))"


def canonical(expr: Expr) -> Expr:
    """``expr`` with its axes renamed a, b, c … by first appearance in the operands: ``ki*kj~ijk`` → ``ab*ac~bca``."""
    read = "".join(o.axes for o in expr.operands if isinstance(o, Access))
    names = dict(zip(dict.fromkeys(read), ascii_lowercase, strict=False))
    return replace(
        expr,
        operands=tuple(_operand(operand, names) for operand in expr.operands),
        output=_renamed(expr.output, names),
        splits=tuple((names[axis], factors) for axis, factors in expr.splits),
        order=tuple(_item(item, names) for item in expr.order),
    )


def _operand(operand: Operand, names: dict[str, str]) -> Operand:
    return Access(_renamed(operand.axes, names)) if isinstance(operand, Access) else operand


def _item(item: OrderItem, names: dict[str, str]) -> OrderItem:
    return Loop(names[item.axis], item.level) if isinstance(item, Loop) else item


def _renamed(axes: str, names: dict[str, str]) -> str:
    return "".join(names[axis] for axis in axes)
