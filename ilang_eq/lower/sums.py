"""Values as sums of multiples of others: which are equal up to inlining and scaling, and what an extremum bounds.

Every node is written as Σ cₖ·atomₖ + constant. Sums, differences and multiples by numbers are expanded; whatever else
is computed is an atom, numbered by what it computes, so that two nodes that compute the same have the same form.

Invariants:
  * a form's letters are the output axes of its node; an atom's are its free axes, by first appearance
  * equal numbers mean equal values at equal axes (not the reverse: a product is not compared with its mirror image)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import isclose, isfinite

from ilang_eq.lang.expr import Access, Expr, Literal
from ilang_eq.lang.graph import Graph, Input, Source, Value

Term = tuple[int, str]
"""An atom at axes; the constant is ``ONE``."""

Sum = Mapping[Term, float]
"""Coefficients, none of them 0."""

ONE: Term = (0, "")
_LONGEST = 16
"""Terms of a sum beyond which it is an atom."""


@dataclass(frozen=True, slots=True)
class Extremum:
    """An atom ``op``_bound ``inner``; ``free`` and ``bound`` are the letters that ``inner`` uses."""

    op: str
    inner: tuple[tuple[Term, float], ...]
    free: str
    bound: str

    def at(self, axes: str, bound: Sequence[str]) -> Sum:
        """Its operand at the given axes: never above a maximum, never below a minimum."""
        letters = dict(zip(self.free + self.bound, (*axes, *bound), strict=True))
        return _gathered((_renamed(term, letters), c) for term, c in self.inner)


@dataclass
class Sums:
    """The sums of one graph, all found when first asked for, and what its extrema are taken of.

    ``bound`` are the letters that an extremum is taken over, by its node.
    """

    graph: Graph
    bound: dict[int, str] = field(default_factory=dict)
    extrema: dict[int, Extremum] = field(default_factory=dict)
    _numbers: dict[object, int] = field(default_factory=dict)

    @cached_property
    def of_node(self) -> Mapping[int, Sum]:
        """The sum that each node is."""
        found: dict[int, Sum] = {}
        for node in self.graph.order():
            found[node] = self._sum(node, found)
        return found

    def read(self, node: int, operand: int) -> Sum:
        """An operand of a node, in the letters of that node."""
        given = self.graph.nodes[node]
        return self._read(given.expr.operands[operand], given.operands[operand], self.of_node)

    def _read(self, operand: Access | Literal, source: Source, found: Mapping[int, Sum]) -> Sum:
        match operand, source:
            case Literal(value), _:
                return {ONE: value} if value else {}
            case Access(axes), Input(index):
                return {(self._number(("input", index)), axes): 1.0}
            case Access(axes), Value(node):
                letters = dict(zip(self.graph.nodes[node].expr.output, axes, strict=True))
                return _gathered((_renamed(term, letters), c) for term, c in found[node].items())
            case _:
                raise AssertionError(f"{operand} reads a number")

    def _sum(self, node: int, found: Mapping[int, Sum]) -> Sum:
        expr, sources = self.graph.nodes[node].expr, self.graph.nodes[node].operands
        reads = [self._read(o, s, found) for o, s in zip(expr.operands, sources, strict=True)]
        whole = None if expr.reduced else _expanded(expr, reads)
        return {self._atom(node, expr, reads): 1.0} if whole is None or len(whole) > _LONGEST else whole

    def _atom(self, node: int, expr: Expr, reads: Sequence[Sum]) -> Term:
        """The atom that a node is: by its op and its operands, with its letters renamed by first appearance."""
        given = [sorted(read.items(), key=lambda item: (item[0][0], item[1])) for read in reads]
        met = "".join(dict.fromkeys(letter for read in given for (_, axes), _ in read for letter in axes))
        letters = {letter: chr(ord("a") + n) for n, letter in enumerate(met)}
        free = "".join(letter for letter in met if letter in expr.output)
        bound = "".join(letter for letter in met if letter not in expr.output)
        inner = [tuple((_renamed(term, letters), c) for term, c in read) for read in given]
        canonical = "".join(letters[letter] for letter in bound)
        number = self._number((expr.op, canonical, *inner))
        if expr.reduced and expr.op in ("max", "min"):
            self.bound[node] = bound
            self.extrema[number] = Extremum(expr.op, inner[0], "".join(letters[letter] for letter in free), canonical)
        return number, free

    def _number(self, structure: object) -> int:
        return self._numbers.setdefault(structure, len(self._numbers) + 1)


def bounded(sums: Sums, value: Sum, term: Term, choices: Iterable[Sequence[str]]) -> bool:
    """Whether ``value`` is at most what is free of an extremum's axes, as long as that has seen the element at hand.

    Args:
        value: a sum with the extremum ``term`` in it, which makes it smaller.
        term: the extremum, which may be unfinished.
        choices: for the axes it is taken over, the letters that may stand for the element at hand.
    """
    for letters in choices:
        rest = _replaced(sums, value, term, letters)
        if _settled(sums, rest, frozenset(letters), 4):
            return True
    return False


def _settled(sums: Sums, value: Sum, letters: frozenset[str], depth: int) -> bool:
    """Whether ``value`` is free of ``letters`` once extrema that lower it give way to what they are taken of."""
    present = {letter for _, axes in value for letter in axes}
    if not present & letters:
        return True
    lowering = [term for term, c in value.items() if letters.intersection(term[1]) and lowers(sums, term, c)]
    if not depth or not lowering:
        return False
    extremum = sums.extrema[lowering[0][0]]
    for chosen in product(sorted(present), repeat=len(extremum.bound)):
        rest = _replaced(sums, value, lowering[0], chosen)
        cancelled = len(rest) < len(value) - 1 + len(extremum.inner)
        if cancelled and _settled(sums, rest, letters | set(chosen), depth - 1):
            return True
    return False


def lowers(sums: Sums, term: Term, coefficient: float) -> bool:
    """Whether ``term`` is an extremum that can only make a value smaller as it moves."""
    extremum = sums.extrema.get(term[0])
    return extremum is not None and (coefficient < 0 if extremum.op == "max" else coefficient > 0)


def _replaced(sums: Sums, value: Sum, term: Term, letters: Sequence[str]) -> Sum:
    """``value`` with an extremum replaced by its operand at ``letters``."""
    inner = sums.extrema[term[0]].at(term[1], letters)
    kept = ((other, c) for other, c in value.items() if other != term)
    return _gathered((*kept, *((other, value[term] * c) for other, c in inner.items())))


def _expanded(expr: Expr, reads: Sequence[Sum]) -> Sum | None:
    """The sum that a pointwise expression of sums is; None if it is none."""
    numbers = [operand.value if isinstance(operand, Literal) else None for operand in expr.operands]
    match expr.op, reads, numbers:
        case "add" | "mul" | "max" | "min", [x], _:
            return x
        case "sub", [x], _:
            return scaled(x, -1)
        case "add", [x, y], _:
            return _gathered((*x.items(), *y.items()))
        case "sub", [x, y], _:
            return _gathered((*x.items(), *scaled(y, -1).items()))
        case "mul", [x, _], [_, float() | int() as c]:
            return scaled(x, c)
        case "mul", [_, y], [float() | int() as c, _]:
            return scaled(y, c)
        case "div", [x, _], [_, float() | int() as c] if c and isfinite(1 / c):
            return scaled(x, 1 / c)
        case _:
            return None


def scaled(value: Sum, by: float) -> Sum:
    """``by`` times ``value``."""
    return {term: c * by for term, c in value.items() if c * by}


def _gathered(terms: Iterable[tuple[Term, float]]) -> Sum:
    """The sum of ``terms``: like ones together, and none where they cancel up to rounding."""
    found: dict[Term, float] = {}
    for term, c in terms:
        before = found.pop(term, 0.0)
        if not isclose(before, -c, rel_tol=1e-9):
            found[term] = before + c
    return found


def _renamed(term: Term, letters: Mapping[str, str]) -> Term:
    return term[0], "".join(letters[letter] for letter in term[1])
