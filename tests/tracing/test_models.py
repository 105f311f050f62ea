"""Models as people write them, small: traced by the interpreter; one with kernels, from search to call."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is optional")
pytest.importorskip("transformers", reason="transformers is optional")

from benchmarks.model_zoo import MODELS, SMALL, build  # noqa: E402
from ilang_eq import trace  # noqa: E402
from ilang_eq.batch.tasks import collected  # noqa: E402
from ilang_eq.errors import OptionError  # noqa: E402
from tests.tracing.interpreting import assert_close, interpreted  # noqa: E402


@pytest.mark.parametrize("name", MODELS)
def test_same_outputs_as_eager(name: str) -> None:
    model, inputs = build(name, SMALL)
    traced = interpreted(model, *inputs)
    with torch.no_grad():
        assert_close(traced(*inputs), model(*inputs), rtol=1e-4)
    assert traced.coverage.fraction >= 0.95
    layers = SMALL.layers if name not in ("llama", "kernel regression") else 1
    assert len(traced.problems) <= len(traced.regions) / layers + 2


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_layer_from_search_to_call(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ilang_eq.trace")

    def layer(x: Any, w: Any, b: Any) -> Any:
        return torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b), approximate="tanh")

    args = torch.randn(2, 3, 8), torch.randn(5, 8), torch.randn(5)
    traced = trace(layer, args, strict=True, threads=1)
    assert [problem.constants for problem in traced.problems] == [()]
    for _ in range(2):
        assert_close(traced(*args), layer(*args))
    told = [record.message for record in caplog.records if record.name == "ilang_eq.trace"]
    assert len(told) == 2
    assert told[0] == f"optimising {len(traced.problems)} components: first call"
    assert [(task.component, task.weight) for task in collected([traced])] == [(traced.regions[0].component, 1.0)]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_schedules_are_timed_if_asked() -> None:
    layer, x = torch.nn.Linear(8, 5), torch.randn(3, 8)
    traced = trace(layer, (x,), threads=1, effort="measure").optimize()
    (best,) = traced.runner.kernels.found.values()
    assert best.best.measured is not None
    assert_close(traced(x), layer(x).detach())
    with pytest.raises(OptionError, match="no effort 'most'"):
        trace(layer, (x,), effort="most")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_nothing_is_compiled_after_optimize(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ILANG_EQ_CACHE", str(tmp_path))
    layer, x = torch.nn.Linear(8, 5), torch.randn(3, 8)
    traced = trace(layer, (x,), threads=1).optimize()
    built = set(tmp_path.iterdir())
    assert [task.constants for task in collected([traced])] == [("in1", "in2")]
    assert_close(traced(x), layer(x).detach())
    assert set(tmp_path.iterdir()) == built
