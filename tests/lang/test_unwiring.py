"""Graphs back to components: the same graph up to numbering, in text that reads well."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilang_eq.errors import WiringError
from ilang_eq.lang.component import I, i
from ilang_eq.lang.expr import Access, Expr
from ilang_eq.lang.graph import Graph, Input, Node, Source, Value, Wire
from ilang_eq.lang.parser import parse
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire
from tests.strategies import Typed, components

NAMES = {"i": i, "I": I}


def numbered(graph: Graph) -> Graph:
    """The graph with its nodes in the order in which a walk from the outputs leaves them."""
    order: dict[int, int] = {}

    def visit(source: Source) -> None:
        if isinstance(source, Value) and source.node not in order:
            for operand in graph.nodes[source.node].operands:
                visit(operand)
            order[source.node] = len(order)

    for wire_ in graph.outputs:
        visit(wire_)

    def rename(source: Source) -> Source:
        return Value(order[source.node]) if isinstance(source, Value) else source

    nodes = tuple(Node(graph.nodes[n].expr, tuple(map(rename, graph.nodes[n].operands))) for n in order)
    outputs = tuple(Value(order[w.node]) if isinstance(w, Value) else w for w in graph.outputs)
    return Graph(graph.inputs, nodes, outputs)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any wiring of one- and two-operand nodes: shared values, inputs in any order, repeats, pass-through."""
    inputs = draw(st.integers(1, 5))
    known: list[Wire] = [Input(k) for k in range(inputs)]
    nodes: list[Node] = []
    for n in range(draw(st.integers(0, 9))):
        arity = draw(st.integers(1, 2))
        operands = tuple(draw(st.sampled_from(known)) for _ in range(arity))
        name = "abcdefghij"[n]
        text = f"-{name}~{name}" if arity == 1 else f"{name}*{name}~{name}"
        nodes.append(Node(parse(text), operands))
        known.append(Value(n))
    read = {s for node in nodes for s in node.operands}
    outputs = [w for w in known if w not in read] + draw(st.lists(st.sampled_from(known), max_size=2))
    return Graph(inputs, tuple(nodes), tuple(draw(st.permutations(outputs))))


@settings(max_examples=500)
@given(graphs())
def test_any_graph_survives(graph: Graph) -> None:
    component = unwire(graph)
    assert numbered(wire(component)) == numbered(graph)
    assert eval(str(component), NAMES) == component


@settings(max_examples=200)
@given(components())
def test_components_survive(typed: Typed) -> None:
    graph = wire(typed.component)
    assert numbered(wire(unwire(graph))) == numbered(graph)


ATTENTION = (
    'i("ik*jk~ijk") >> i("+ijk~ij") >> (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") '
    '>> (I & i("+ij~i")) >> i("ij/i~ij") >> i("ij*jk~ikj") >> i("+ikj~ik")'
)


@pytest.mark.parametrize(
    "text",
    [
        ATTENTION,
        "I",
        'i("-i~i")',
        'i("-i~i") >> i("^i~i")',
        '(i("-i~i") | i("^j~j")) >> i("i*j~ij")',
        '(I & I) >> i("i*i~i")',
        '(I & i("+ij~i")) >> i("ij/i~ij")',
        'i("+ij~i") >> i("i-j~ij")',
        '(I | i("-i~i")) >> i("i*j~ij") >> i("+ij~i")',
        '~i("i-j~ij")',
        'i("-i~i") >> (I & i("^i~i"))',
        'i("-i~i") | i("^i~i")',
        '(i("+ij~i") & i(">ij~i")) >> i("i-i~i")',
        "I & I",
        "~(I | I)",
        'i("ik*kj~ikj") >> i("+ikj~ij") >> i("0>ij~ij") >> i("ij*jk~ijk") >> i("+ijk~ik")',
        '(I & (I & i("+ij~i")) >> i("ij-i~ij") >> (I & I) >> i("ij*ij~ij") >> i("+ij~i")) >> i("ij/i~ij")',
    ],
)
def test_what_a_person_writes_comes_back(text: str) -> None:
    assert str(unwire(wire(eval(text, NAMES)))) == text


def test_stacked_attention_is_a_chain() -> None:
    block = eval(ATTENTION, NAMES)
    stacked = block
    for _ in range(7):
        stacked = stacked >> block
    assert str(unwire(wire(stacked))) == " >> ".join([ATTENTION] * 8)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (Graph(2, (), (Input(0),)), "nothing reads input 1"),
        (Graph(1, (Node(Expr("sub", (Access("i"),), "i"), (Input(0),)),), (Input(0),)), "nothing reads -i~i"),
    ],
)
def test_what_nothing_reads_cannot_be_written(graph: Graph, words: str) -> None:
    with pytest.raises(WiringError, match=words):
        unwire(graph)


def test_ten_thousand_leaves() -> None:
    chain = i("-i~i")
    for _ in range(10_000):
        chain = chain >> i("-i~i")
    assert unwire(wire(chain)) == chain


def test_hundreds_of_spare_inputs() -> None:
    chain = i("i-i~i")
    for _ in range(300):
        chain = chain >> i("i-i~i")
    assert unwire(wire(chain)) == chain
