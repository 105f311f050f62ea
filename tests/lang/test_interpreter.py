"""The oracle against the conformance data, and against plain loops over every index."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from ilang_eq.errors import ArrayError, ILangError, ShapeError
from ilang_eq.lang import interpreter
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.expr import Access, Expr, Literal
from ilang_eq.lang.graph import Graph, Source, Value
from ilang_eq.lang.ops import OPS
from ilang_eq.lang.wiring import wire
from tests.conformance_cases import array, cases, component, inputs
from tests.strategies import Typed, components


def outputs(built: Component, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    got = built.interpret(*arrays)
    return got if isinstance(got, tuple) else (got,)


def agrees(built: Component, arrays: list[np.ndarray], expected: list[Any], rtol: float, atol: float) -> None:
    for mine, data in zip(outputs(built, arrays), expected, strict=True):
        right = array(data)
        assert mine.shape == right.shape
        assert mine.dtype == np.float64
        np.testing.assert_allclose(mine, right, rtol=rtol, atol=atol, equal_nan=True)


@pytest.mark.parametrize("case", cases("combinators.json"), ids=lambda c: c["id"])
def test_combinators(case: dict[str, Any]) -> None:
    agrees(component(case["tree"]), inputs(case), case["outputs"], 1e-5, 1e-6)


@pytest.mark.parametrize("case", [c for c in cases("schedules.json") if "numeric" in c], ids=lambda c: c["id"])
def test_schedules_change_nothing(case: dict[str, Any]) -> None:
    for numeric in case["numeric"]:
        agrees(component(case["tree"]), inputs(numeric), numeric["outputs"], 3e-5, 5e-6)


@pytest.mark.parametrize("case", cases("upstream_bugs.json"), ids=lambda c: c["id"])
def test_upstream_bugs(case: dict[str, Any]) -> None:
    if case["class"] == "zero-split-factor":
        with pytest.raises(ILangError):
            component(case["tree"])
        return
    agrees(component(case["tree"]), inputs(case), case["outputs"], 3e-5, 5e-6)


@pytest.mark.parametrize("case", cases("disagreements.json"), ids=lambda c: c["id"])
def test_disagreements(case: dict[str, Any]) -> None:
    """Where the description is silent, we do as the reference does: NaN is skipped, unary && copies, >> compares."""
    answer = case["reference"] if case["right"] == "either" else case["readme"]
    if answer.get("refuse"):
        with pytest.raises(ILangError):
            outputs(component(case["tree"]), inputs(case))
        return
    agrees(component(case["tree"]), inputs(case), answer["outputs"], 1e-5, 1e-6)


def by_loops(graph: Graph, arrays: list[np.ndarray], extents: dict[tuple[int, str], int]) -> list[np.ndarray]:
    """The outputs, one element of one expression at a time."""
    values: dict[Source, np.ndarray] = {}

    def value(source: Source) -> np.ndarray:
        if isinstance(source, Value):
            if source not in values:
                node = graph.nodes[source.node]
                read = [np.asarray(s.value) if isinstance(s, Literal) else value(s) for s in node.operands]
                sizes = {axis: extents[source.node, axis] for axis in node.expr.axes}
                values[source] = element_by_element(node.expr, read, sizes)
            return values[source]
        return arrays[source.index] if not isinstance(source, Literal) else np.asarray(source.value)

    return [value(wire_) for wire_ in graph.outputs]


def element_by_element(expr: Expr, operands: list[np.ndarray], sizes: dict[str, int]) -> np.ndarray:
    op = OPS[expr.op]
    result = np.full([sizes[a] for a in expr.output], op.identity if expr.reduced else 0.0)
    for index in itertools.product(*(range(sizes[a]) for a in expr.axes)):
        at = dict(zip(expr.axes, index, strict=True))
        read = [
            np.asarray(array_[tuple(at[a] for a in o.axes)] if isinstance(o, Access) else array_)
            for o, array_ in zip(expr.operands, operands, strict=True)
        ]
        here = tuple(at[a] for a in expr.output)
        if expr.reduced:
            result[here] = op.apply(np.asarray(result[here]), read[0])
        else:
            result[here] = op.unary(read[0]) if len(read) == 1 else op.apply(read[0], read[1])
    return result


@given(components(extents=(0, 1, 2, 3), depth=3))
def test_against_plain_loops(typed: Typed) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in typed.inputs]
    graph = wire(typed.component)
    shapes = interpreter.infer(graph)
    bound = shapes.bind(typed.inputs)
    extents = {(n, a): bound[shapes.extent(n, a)] for n, node in enumerate(graph.nodes) for a in node.expr.axes}
    got = outputs(typed.component, arrays)
    with np.errstate(all="ignore"):
        right = by_loops(graph, arrays, extents)
    assert tuple(a.shape for a in got) == typed.outputs
    for mine, theirs in zip(got, right, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12, equal_nan=True)


PRODUCTS = (
    i("ik*kj~ijk") >> i("+ijk~ij"),
    i("ik-kj~ijk") >> i("+ijk~ji"),
    i("ik*kj~kji") >> i(">abc~ca"),
    i("i*j~ij") >> i("*ij~."),
    i("^ij~ij") >> i("+ij~j"),
    i("ik+0.5~ik") >> i("&&ik~k"),
    i("i*i~i") >> i("+i~."),
    i("ii*ij~ij") >> i("<ij~j"),
)


@pytest.mark.parametrize("built", PRODUCTS, ids=str)
@pytest.mark.parametrize("block", [1, 3, 10])
def test_blocks_change_nothing(built: Component, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = interpreter.infer(wire(built)).ranks
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((4,) * (rank or 0)) for rank in ranks]
    whole = outputs(built, arrays)
    monkeypatch.setattr(interpreter, "BLOCK", block)
    np.testing.assert_allclose(outputs(built, arrays), whole, rtol=1e-12)


def test_a_big_product_is_never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0
    multiply = OPS["mul"].apply

    def watched(expr: Expr, views: list[np.ndarray]) -> np.ndarray:
        nonlocal largest
        made = multiply(views[0], views[1])
        largest = max(largest, made.size)
        return made

    monkeypatch.setattr(interpreter, "_pointwise", watched)
    a, b = np.ones((300, 64)), np.ones((64, 400))
    np.testing.assert_array_equal(PRODUCTS[0].interpret(a, b), np.full((300, 400), 64.0))
    assert 0 < largest <= interpreter.BLOCK


def test_softmax_of_large_scores() -> None:
    softmax = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
    got = softmax.interpret([[1000.0, 1000.0], [-math.inf, 0.0]])
    np.testing.assert_array_equal(got, [[0.5, 0.5], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("text", "empty"), [("+ij~i", 0.0), ("*ij~i", 1.0), (">ij~i", -math.inf), ("<ij~i", math.inf), ("&&ij~i", 1.0)]
)
def test_a_reduction_of_nothing_is_its_identity(text: str, empty: float) -> None:
    np.testing.assert_array_equal(i(text).interpret(np.zeros((3, 0))), [empty] * 3)
    assert np.shape(i(text).interpret(np.zeros((0, 3)))) == (0,)


def test_numbers() -> None:
    np.testing.assert_array_equal(i("0>i~i").interpret([-1.0, 2.0]), [0.0, 2.0])
    np.testing.assert_array_equal(i("i-0.5~i").interpret([1, 2]), [0.5, 1.5])
    np.testing.assert_array_equal((i("2*3~.") >> i("-.~.")).interpret(), -6.0)


def test_one_output_is_an_array_and_several_a_tuple() -> None:
    assert isinstance(i("-i~i").interpret([1.0]), np.ndarray)
    both = (i("-i~i") & I).interpret([1.0])
    assert isinstance(both, tuple)
    assert len(both) == 2


def test_results_share_no_memory_with_inputs_or_each_other() -> None:
    x = np.ones(3)
    a, b, c = (I & I & i("+i~i")).interpret(x)
    assert not any(np.shares_memory(p, q) for p, q in itertools.combinations((x, a, b, c), 2))


def test_inputs_of_any_kind() -> None:
    for x in ([1, 2], (1, 2), np.array([1, 2], np.int8), np.array([1, 2], np.float16), [True, False]):
        np.testing.assert_array_equal(i("-i~i").interpret(x), -np.asarray(x, np.float64))
    np.testing.assert_array_equal(i("-.~.").interpret(3), -3.0)


@pytest.mark.parametrize(
    ("arrays", "error", "words"),
    [
        ((), ArrayError, "0 arrays given"),
        (([1.0], [2.0], [3.0]), ArrayError, "3 arrays given"),
        ((["a"], [1.0]), ArrayError, "argument 0 has dtype"),
        (([1.0], [1j]), ArrayError, "argument 1 has dtype complex128"),
        (([1.0], [[1.0], [1.0, 2.0]]), ArrayError, "argument 1 is no array"),
        (([1.0], [None]), ArrayError, "argument 1 has dtype object"),
        (([1.0], [[1.0]]), ShapeError, "input 1 has shape (1, 1), of rank 2"),
        (([1.0], [1.0, 2.0]), ShapeError, "dimension 0 of input 1 has extent 2"),
    ],
)
def test_bad_arrays(arrays: tuple[Any, ...], error: type[ILangError], words: str) -> None:
    with pytest.raises(error) as caught:
        i("i*i~i").interpret(*arrays)
    assert words in caught.value.message


def test_no_warnings(recwarn: pytest.WarningsRecorder) -> None:
    i("/i~i").interpret([0.0])
    i("$i~i").interpret([-1.0])
    i("i-i~i").interpret([math.inf], [math.inf])
    assert not recwarn.list
