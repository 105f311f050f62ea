"""``torch.compile`` with the interpreter in place of kernels."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is optional")

from ilang_eq.tracing import backend  # noqa: E402
from tests.tracing.interpreting import Interpreting, assert_close  # noqa: E402
from tests.tracing.test_partition import Block  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Interpreting]:
    found = Interpreting()
    monkeypatch.setattr(backend, "_KERNELS", {(None, "model"): found})
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()


def test_one_compilation_serves_all_lengths(kernels: Interpreting, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ilang_eq.trace")
    model = Block().eval()
    compiled = torch.compile(model, backend=backend.ilang_eq)
    with torch.no_grad():
        for length in (5, 6, 7, 8, 9, 17):
            x = torch.randn(2, length, 8)
            assert_close(compiled(x), model(x))
    told = [record.message for record in caplog.records if record.message.startswith("compiled")]
    assert len(told) == 2
    assert told[0].endswith("first call")
    assert "was float32 (2, 5, 8), is float32 (2, 's" in told[1]
    asked = [why for _, why in kernels.asked if "bucket" in why]
    assert [why.rpartition("(")[2] for why in asked] == ["bucket 8)", "bucket 16)", "bucket 32)"]


class Together(Block):
    """Queries, keys and values from one product, as in GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.all = torch.nn.Linear(8, 24)

    def forward(self, x: Any) -> Any:
        heads = [part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.all(self.norms[0](x)).split(8, -1)]
        found = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return x + self.attend[3](found.transpose(1, 2).flatten(2))


def test_batches_and_lengths_that_vary(kernels: Interpreting, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ilang_eq.trace")
    model = Together().eval()
    compiled = torch.compile(model, backend=backend.ilang_eq, dynamic=True)
    with torch.no_grad():
        # the last three have as many rows in all
        for batch, length in ((2, 5), (3, 9), (2, 18), (4, 9), (6, 6)):
            x = torch.randn(batch, length, 8)
            assert_close(compiled(x), model(x))
    assert sum(record.message.startswith("compiled") for record in caplog.records) == 1


def test_gradients_run_eagerly_and_say_so(kernels: Interpreting, caplog: pytest.LogCaptureFixture) -> None:
    model = Block()
    torch.compile(model, backend=backend.ilang_eq)(torch.randn(2, 5, 8)).sum().backward()
    assert model.grow.weight.grad is not None
    (record,) = [r for r in caplog.records if r.name == "ilang_eq.trace"]
    assert "torch.no_grad()" in record.message


def test_tensors_on_other_devices_run_eagerly_and_say_so(
    kernels: Interpreting, caplog: pytest.LogCaptureFixture
) -> None:
    with torch.no_grad():
        found = torch.compile(lambda x: x * 2, backend=backend.ilang_eq)(torch.randn(3, device="meta"))
    assert found.device.type == "meta"
    (record,) = [r for r in caplog.records if r.name == "ilang_eq.trace"]
    assert "on device meta" in record.message


def repeated(x: Any) -> Any:
    step = lambda n, x: (n + 1, (x @ x).tanh())  # noqa: E731
    return torch._higher_order_ops.while_loop(lambda n, x: n < 3, step, (torch.tensor(0), x))[1]


@pytest.mark.parametrize("function", [lambda x: torch.linalg.inv(x) @ x, repeated])
def test_what_are_no_aten_calls_runs_eagerly_and_says_so(
    function: Callable[[Any], Any], kernels: Interpreting, caplog: pytest.LogCaptureFixture
) -> None:
    x = torch.randn(4, 4)
    with torch.no_grad():
        assert_close(torch.compile(function, backend=backend.ilang_eq)(x), function(x))
    (record,) = [r for r in caplog.records if r.name == "ilang_eq.trace"]
    assert "is no ATen call" in record.message


def test_an_inverse_that_there_is_not_is_an_error(kernels: Interpreting) -> None:
    with torch.no_grad(), pytest.raises(torch.linalg.LinAlgError):
        torch.compile(lambda x: torch.linalg.inv(x) + 1, backend=backend.ilang_eq)(torch.zeros(3, 3))


def test_weights_are_prepared_and_may_change(kernels: Interpreting) -> None:
    layer = torch.nn.Linear(4, 3)
    compiled = torch.compile(layer, backend=backend.ilang_eq)
    x = torch.randn(2, 4)
    with torch.no_grad():
        for _ in range(2):
            assert_close(compiled(x), layer(x))
            layer.weight.mul_(2)


def test_threads_and_effort_are_options(monkeypatch: pytest.MonkeyPatch, kernels: Interpreting) -> None:
    monkeypatch.setattr(backend, "_KERNELS", {(3, "measure"): kernels})
    compiled = torch.compile(lambda x: x * 2, backend=backend.ilang_eq, options={"threads": 3, "effort": "measure"})
    with torch.no_grad():
        compiled(torch.randn(3))
    assert kernels.asked


def test_other_options_are_refused(kernels: Interpreting) -> None:
    compiled = torch.compile(lambda x: x * 2, backend=backend.ilang_eq, options={"speed": "high"})
    with pytest.raises(Exception, match="no option 'speed'"):
        compiled(torch.randn(3))


def test_the_entry_point_names_the_backend() -> None:
    points: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    module, _, name = points["torch_dynamo_backends"]["ilang_eq"].partition(":")
    assert getattr(import_module(module), name) is backend.ilang_eq
