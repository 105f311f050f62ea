"""Wiring against free functions written from the combinators' prose, and the numbering of leaves."""

from __future__ import annotations

from hypothesis import given

from ilang_eq.lang.component import Chain, Component, Compose, Fanout, I, Identity, Leaf, Pair, Swap, i
from ilang_eq.lang.expr import Literal
from ilang_eq.lang.graph import Graph, Input, Source, Value
from ilang_eq.lang.wiring import wire
from tests.rewrites.free_functions import IDENTITY, Free, free
from tests.strategies import Typed, components


def as_free(component: Component, first: int = 0) -> Free:
    """The component with its n-th leaf replaced by a free function called n."""
    match component:
        case Leaf():
            return free(str(first), component.inputs, 1)
        case Identity():
            return IDENTITY
        case Swap(of=of):
            return ~as_free(of, first)
        case Chain(left=left, right=right):
            return as_free(left, first) >> as_free(right, first + left.leaves)
        case Compose(left=left, right=right):
            return as_free(left, first) << as_free(right, first + left.leaves)
        case Fanout(left=left, right=right):
            return as_free(left, first) & as_free(right, first + left.leaves)
        case Pair(left=left, right=right):
            return as_free(left, first) | as_free(right, first + left.leaves)
        case _:
            raise AssertionError(component)


def results(graph: Graph) -> list[object]:
    """The graph's outputs as terms over its inputs, numbers left out."""

    def term(source: Source) -> object:
        if isinstance(source, Value):
            reads = graph.nodes[source.node].operands
            return (str(source.node), 0, *(term(s) for s in reads if not isinstance(s, Literal)))
        assert isinstance(source, Input)
        return source.index

    return [term(wire) for wire in graph.outputs]


@given(components())
def test_wiring_is_what_free_functions_do(typed: Typed) -> None:
    graph = wire(typed.component)
    assert results(graph) == as_free(typed.component).results()
    assert graph.inputs == len(typed.inputs)


@given(components())
def test_nodes_are_the_leaves_from_left_to_right(typed: Typed) -> None:
    def leaves(component: Component) -> list[object]:
        return [component.expr] if isinstance(component, Leaf) else [e for p in component.parts for e in leaves(p)]

    assert [node.expr for node in wire(typed.component).nodes] == leaves(typed.component)


def test_swapping_one_input_changes_nothing() -> None:
    assert wire(~i("-i~i")) == wire(i("-i~i"))


def test_numbers_stand_between_inputs() -> None:
    graph = wire(i("2-i~i") >> i("i*0.5~i"))
    assert graph.nodes[0].operands == (Literal(2.0), Input(0))
    assert graph.nodes[1].operands == (Value(0), Literal(0.5))


def test_passing_through_and_repeating() -> None:
    assert wire(I & I).outputs == (Input(0), Input(0))
    assert wire(~(I | I)).outputs == (Input(1), Input(0))
    assert wire(i("-i~i") >> (I & I)).outputs == (Value(0), Value(0))


def test_ten_thousand_leaves_need_no_recursion() -> None:
    chain = nested = i("-i~i")
    for _ in range(10_000):
        chain, nested = chain >> i("-i~i"), i("-i~i") >> nested
    assert wire(chain).outputs == wire(nested).outputs == (Value(10_000),)
