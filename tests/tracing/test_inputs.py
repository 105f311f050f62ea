"""What a traced model may be called with, and what is said of the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is optional")

from ilang_eq.errors import ArrayError, TraceError  # noqa: E402
from ilang_eq.tracing.capture import capture  # noqa: E402
from ilang_eq.tracing.json_text import from_json, to_json  # noqa: E402
from ilang_eq.tracing.traced import Traced, traced_from_json  # noqa: E402
from tests.tracing.interpreting import Interpreting, assert_close, interpreted  # noqa: E402

X = torch.randn(3, 4)


@pytest.mark.parametrize(("example", "other"), [(2.5, 3.5), (2, 3), (2, 2.0), (True, False), ("a", "b"), (None, X)])
def test_what_is_no_tensor_is_what_it_was(example: Any, other: Any) -> None:
    def scaled(x: Any, by: Any) -> Any:
        return x * 2 if by in ("a", None) else x * 3 if isinstance(by, str) else x * by

    traced = interpreted(scaled, X, example)
    assert_close(traced(X, example), scaled(X, example))
    with pytest.raises(ArrayError, match=r"input \w+ is .*, and .* in the example"):
        traced(X, other)


@pytest.mark.parametrize("value", [X.double(), X[:2], X[0], 1.0, [1.0], None, X.numpy()])
def test_a_tensor_is_like_the_examples(value: Any) -> None:
    with pytest.raises(ArrayError, match=r"input \w+ is .*\n?.*float32 of \(3, 4\)"):
        interpreted(lambda x: x + 1, X)(value)


@pytest.mark.parametrize(
    "value", [X.to("meta"), X.to_sparse(), torch.nested.nested_tensor([X[0], X[1]], layout=torch.jagged), X.to_mkldnn()]
)
def test_a_tensor_is_dense_and_on_the_cpu(value: Any) -> None:
    with pytest.raises(ArrayError, match=r"input \w+ is .*\n?.*a dense tensor on the CPU"):
        interpreted(lambda x: x + 1, X)(value)


def test_one_tensor_twice_in_the_example_is_two_inputs() -> None:
    def both(x: Any, y: Any) -> Any:
        return x * 2 + y

    traced = interpreted(both, X, X)
    assert_close(traced(X, X + 1), both(X, X + 1))
    layer = torch.nn.Linear(4, 3)
    traced = interpreted(layer, layer.weight)
    assert_close(traced(X), layer(X).detach())


def test_keys_come_in_any_order() -> None:
    def both(given: dict[str, Any], *, y: Any, z: Any) -> Any:
        return given["a"] - given["b"] * y / z

    example = ({"a": X, "b": X + 1},), {"y": X + 2, "z": X.exp()}
    traced = Traced(capture(both, *example), Interpreting())
    found = traced({"b": X + 1, "a": X}, z=X.exp(), y=X + 2)
    assert_close(found, both(*example[0], **example[1]))


def test_another_structure_is_refused() -> None:
    traced = interpreted(lambda pair: pair[0] + pair[1], (X, X))
    for other in (((X,),), (X,), (X, X), ({"a": X},)):
        with pytest.raises(ArrayError, match=r"unlike the example's\nexpected: \(\(\*, \*\)\)"):
            traced(*other)


def test_views_of_all_kinds_are_read_right() -> None:
    traced = interpreted(lambda x: (x @ x.T).exp(), X)
    for x in (torch.randn(4, 3).T, torch.randn(3, 8)[:, ::2], torch.randn(4).expand(3, 4), torch._neg_view(X)):
        assert_close(traced(x), (x @ x.T).exp())


def test_equal_symbols_are_equal_extents() -> None:
    arguments = [{"name": n, "kind": "input", "dtype": "float32", "shape": ["s0", 2]} for n in "xy"]
    node = {"name": "z", "op": "aten.add.Tensor", "args": [{"ref": "x"}, {"ref": "y"}]}
    program = {"format": "ilang_eq.trace", "version": 1, "sizes": {"s0": 3}, "arguments": arguments}
    program |= {"nodes": [{**node, "dtype": "float32", "shape": ["s0", 2]}], "outputs": [{"ref": "z"}]}
    traced = traced_from_json(json.dumps(program), {}, 1)
    with pytest.raises(ArrayError, match=r"an extent s0 is 1, where \{'s0': 5\}"):
        traced(torch.randn(5, 2), torch.randn(1, 2))


def test_values_are_in_the_json() -> None:
    program = capture(lambda x, by, how: x * by, (X, 2.5, None), {}).program
    assert [argument.value for argument in from_json(to_json(program)).arguments] == [None, 2.5, None]
    with pytest.raises(TraceError, match=r"arguments\[1\].value is \[1\]"):
        from_json(to_json(program).replace('"value": 2.5', '"value": [1]'))


def test_extents_that_vary() -> None:
    def scores(x: Any, y: Any) -> Any:
        return torch.softmax(x @ y.mT, -1)

    length = torch.export.Dim("length")
    example = torch.randn(2, 7, 4), torch.randn(2, 7, 4)
    captured = capture(scores, example, {}, ({1: length}, {1: length}))
    traced = Traced(captured, Interpreting())
    for n in (7, 3, 30):
        x, y = torch.randn(2, n, 4), torch.randn(2, n, 4)
        assert_close(traced(x, y), scores(x, y))
    with pytest.raises(ArrayError, match="an extent"):
        traced(torch.randn(2, 7, 4), torch.randn(2, 8, 4))
    with pytest.raises(ArrayError, match=r"float32 of \(2, '\w+', 4\)"):
        traced(torch.randn(3, 7, 4), torch.randn(3, 7, 4))


def test_as_many_tensors_in_another_structure_are_no_example() -> None:
    def both(x: Any, pair: tuple[Any, Any]) -> Any:
        return x * pair[0] + pair[1]

    traced = interpreted(both, X, (X, X))
    assert_close(traced(X, (X + 1, X)), both(X, (X + 1, X)))
    for args, kwargs in (((X, X, X), {}), ((X, (X,)), {}), ((X,), {"pair": (X, X)}), (((X, X), X), {})):
        with pytest.raises(ArrayError, match="arguments unlike the example's"):
            traced(*args, **kwargs)
    with pytest.raises(ArrayError, match="arguments unlike the example's"):
        interpreted(lambda x, y: x + y, X, X)(X)


def test_results_are_structured_as_the_examples() -> None:
    assert isinstance(interpreted(lambda x: x + 1, X)(X), torch.Tensor)
    assert isinstance(interpreted(lambda x: (x + 1,), X)(X), tuple)
    assert interpreted(lambda x: {"a": x + 1}, X)(X).keys() == {"a"}
