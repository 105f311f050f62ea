from __future__ import annotations

import json
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is optional")

from ilang_eq.errors import TraceError  # noqa: E402
from ilang_eq.tracing import from_json  # noqa: E402
from ilang_eq.tracing.json_text import from_json as read  # noqa: E402
from ilang_eq.tracing.json_text import to_json  # noqa: E402
from tests.tracing.interpreting import assert_close, interpreted  # noqa: E402

LAYER: dict[str, Any] = {
    "format": "ilang_eq.trace",
    "version": 1,
    "sizes": {"n": 3},
    "arguments": [
        {"name": "x", "kind": "input", "dtype": "float32", "shape": ["n", 4]},
        {"name": "w", "kind": "parameter", "target": "weight", "dtype": "float32", "shape": [2, 4]},
    ],
    "nodes": [
        {
            "name": "y",
            "op": "aten.linear.default",
            "args": [{"ref": "x"}, {"ref": "w"}],
            "dtype": "float32",
            "shape": ["n", 2],
        },
    ],
    "outputs": [{"ref": "y"}],
}


def changed(*path: Any, to: Any) -> str:
    data = json.loads(json.dumps(LAYER))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return json.dumps(data)


def test_there_and_back() -> None:
    def run(x: Any, n: Any) -> Any:
        return torch.full((3,), float("-inf")).maximum(x.float()) * 2, torch.arange(3, dtype=torch.int64) + n

    program = interpreted(run, torch.randn(3), torch.tensor(2)).program
    assert read(to_json(program)) == program


def test_a_node_list_of_another_front_end() -> None:
    weight = torch.randn(2, 4)
    traced = from_json(json.dumps(LAYER), {"weight": weight})
    assert [str(r.component) for r in traced.regions] == ['i("ij*jk~ikj") >> i("+ikj~ik")']
    for n in (3, 5):
        x = torch.randn(n, 4)
        assert_close(traced(x)[0], x @ weight.T)


WRONG = [
    ("[]", "the node list is"),
    ("{", "no JSON"),
    (changed("version", to=2), "version 2"),
    (changed("sizes", to={"n": 0}), r"sizes\['n'\] is 0"),
    (changed("sizes", to={}), "'x' has the extent n"),
    (changed("arguments", 0, "kind", to="weight"), r"arguments\[0\] has the kind 'weight'"),
    (changed("arguments", 1, "name", to="x"), "two values are called 'x'"),
    (changed("arguments", 1, "shape", to=[2, -4]), r"arguments\[1\]\.shape\[1\] is -4"),
    (changed("nodes", 0, "args", 0, to={"ref": "z"}), r"node 'y' \(aten.linear.default\) reads 'z'"),
    (changed("nodes", 0, "args", 0, to={"reference": "x"}), r"nodes\[0\]\.args\[0\] is"),
    (changed("nodes", 0, "op", to=""), r"nodes\[0\]\.op is ''"),
    (changed("nodes", 0, to={"name": "y"}), r"nodes\[0\] has no 'op'"),
    (changed("outputs", to=[{"ref": "z"}]), "the output reads 'z'"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_no_node_list_is_refused(text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(text)


def test_ops_that_pytorch_lacks_are_refused() -> None:
    for op in ("aten.frobnicate.default", "os.system.default", "aten.linear.nothing", "operator.pow"):
        with pytest.raises(TraceError, match="there is no op"):
            from_json(changed("nodes", 0, "op", to=op), {"weight": torch.randn(2, 4)})


def test_tensors_must_be_there_and_fit() -> None:
    for tensors, message in (({}, "no tensor is given"), ({"weight": torch.randn(4, 2)}, "'weight' is")):
        with pytest.raises(TraceError, match=message):
            from_json(json.dumps(LAYER), tensors)
