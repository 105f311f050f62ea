"""One form for components that differ in names and numbering only."""

from __future__ import annotations

import string
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilang_eq import Component, I, i
from ilang_eq.lang.canonical import canonical
from ilang_eq.lang.expr import Access, Expr
from ilang_eq.lang.graph import Graph, Node, Source, Value
from ilang_eq.lang.interpreter import interpret
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire
from tests.strategies import Typed, components

EXP, SUM = i("^ij~ij"), i("+ij~i")
MATMUL = i("ik*kj~ijk") >> i("+ijk~ij")

SAME: dict[str, tuple[Component, Component]] = {
    "axes": (i("ac*cb~abc") >> i("+xyz~xy"), MATMUL),
    "schedules": (i("ik*kj~ijk|i:4|iki'j") >> i("+ijk~ij|i:4|iki'j0"), MATMUL),
    "chain and compose": (SUM << EXP, EXP >> SUM),
    "brackets": (EXP >> (EXP >> SUM), (EXP >> EXP) >> SUM),
    "a pair of chains, a chain of pairs": ((EXP >> SUM) | (EXP >> SUM), (EXP | EXP) >> (SUM | SUM)),
    "a swap twice": (~~MATMUL, MATMUL),
    "identities": (I >> EXP >> I, EXP),
    "the same said twice": (((EXP >> SUM) & (i("^ab~ab") >> SUM)) >> i("i+i~i"), EXP >> SUM >> (I & I) >> i("i+i~i")),
    "the same twice as outputs": (EXP & EXP, EXP >> (I & I)),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_text(name: str) -> None:
    first, second = (canonical(wire(c)) for c in SAME[name])
    assert first == second
    assert str(unwire(first)) == str(unwire(second))


DIFFERENT: dict[str, tuple[Component, Component]] = {
    "a swap": (~MATMUL, MATMUL),
    "a literal": (i("i*2~i"), i("i*3~i")),
    "a diagonal": (i("ii~i"), i("ij~i")),
    "outputs": (EXP & SUM, SUM & EXP),
    "of other operands": ((EXP | EXP) >> i("ij+ij~ij"), EXP >> (I & I) >> i("ij+ij~ij")),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_not_the_same_text(name: str) -> None:
    first, second = (canonical(wire(c)) for c in DIFFERENT[name])
    assert first != second


@settings(max_examples=25)
@given(components())
def test_the_same_function_in_text_and_back(typed: Typed) -> None:
    graph = wire(typed.component)
    assert canonical(wire(unwire(canonical(graph)))) == canonical(graph)
    arrays = [np.random.default_rng(0).standard_normal(shape) for shape in typed.inputs]
    for a, b in zip(interpret(canonical(graph), arrays), interpret(graph, arrays), strict=True):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=25)
@given(components(), st.data())
def test_renaming_and_renumbering_change_nothing(typed: Typed, data: st.DataObject) -> None:
    graph = wire(typed.component)
    numbers = data.draw(st.permutations(range(len(graph.nodes))))
    letters = data.draw(st.permutations(string.ascii_lowercase))
    assert canonical(renumbered(graph, numbers, "".join(letters))) == canonical(graph)


def renumbered(graph: Graph, numbers: list[int], letters: str) -> Graph:
    """Node n as number ``numbers[n]``, with other names for the axes."""
    table = str.maketrans(string.ascii_lowercase, letters)

    def moved(source: Source) -> Source:
        return Value(numbers[source.node]) if isinstance(source, Value) else source

    def renamed(expr: Expr) -> Expr:
        operands = (Access(o.axes.translate(table)) if isinstance(o, Access) else o for o in expr.operands)
        return Expr(expr.op, tuple(operands), expr.output.translate(table))

    nodes = {numbers[n]: Node(renamed(x.expr), tuple(map(moved, x.operands))) for n, x in enumerate(graph.nodes)}
    outputs = tuple(Value(numbers[w.node]) if isinstance(w, Value) else w for w in graph.outputs)
    return replace(graph, nodes=tuple(nodes[n] for n in sorted(nodes)), outputs=outputs)
