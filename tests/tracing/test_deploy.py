"""Whole models as C libraries: the same results, one workspace, and what cannot leave PyTorch."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang_eq.errors import TraceError
from ilang_eq.tracing import trace
from tests.export.libraries import STRICT, load, run

torch = pytest.importorskip("torch", reason="torch is optional")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        return x + torch.relu(self.linear(x))


class Stack(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.Sequential(*(Block(16) for _ in range(3)))

    def forward(self, x: Any, y: Any) -> Any:
        z = self.blocks(x)
        return z.reshape(2, 6, 8), (z * y).sum(-1)


def call(directory: Path, name: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    built = load(directory, name)
    weights = directory / f"{name}.weights"
    held = [np.fromfile(weights, dtype="<f4")] if weights.exists() else []
    outputs = [np.full([int(d) for d in a["dims"]], np.nan, np.float32) for a in built.manifest["outputs"]]
    workspace = np.full(built.workspace_size(()), 0xFF, np.uint8)
    assert built.run([*inputs, *held, *outputs], (), workspace) == 0
    return outputs


def test_a_model_without_pytorch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Stack().eval()
    x, y = torch.randn(6, 16), torch.randn(6, 16)
    traced = trace(model, (x, y), strict=True, threads=1)
    directory = traced.export(tmp_path / "out", name="stack")
    x, y = torch.randn(6, 16), torch.randn(6, 16)
    with torch.no_grad():
        wanted = model(x, y)
    for got, want in zip(call(directory, "stack", [x.numpy(), y.numpy()]), wanted, strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-5)
    run(["cc", *STRICT, "-O1", "-march=native", "-fopenmp-simd", "main.c", "stack.c", "-lm", "-o", "m"], directory)
    assert run(["./m"], directory).startswith("out0 ")
    manifest = json.loads((directory / "stack.json").read_text())
    assert all("i(" in step["component"] for step in manifest["steps"])
    with pytest.raises(Exception, match="overwrite=True"):
        traced.export(tmp_path / "out", name="stack")


def halves(x: Any) -> Any:
    y = torch.relu(x)
    left, right = y.chunk(2, dim=1)
    return left * torch.exp(right), y.t(), y.reshape(2, 15)


def test_parts_and_transposes_of_values(tmp_path: Path) -> None:
    x = torch.randn(5, 6)
    directory = trace(halves, (x,), threads=1).export(tmp_path / "out")
    x = torch.randn(5, 6)
    for got, want in zip(call(directory, "model", [x.numpy()]), halves(x), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-5)


def joined(x: Any, y: Any) -> Any:
    half = torch.relu(x)
    turned = torch.cat((-half[..., 3:], half[..., :3]), dim=-1)
    stacked = torch.stack((y.mT, turned, x), 1)
    with_ones = torch.cat([torch.ones(1, 6), half, half], 0)
    return torch.exp(turned) * y.mT, stacked, torch.stack((x, half), -1).flatten(1) * 2, with_ones + 1


def test_values_beside_each_other(tmp_path: Path) -> None:
    """As rotary embeddings turn halves, and as a class token is put before all others."""
    x, y = torch.randn(5, 6), torch.randn(6, 5)
    directory = trace(joined, (x, y), threads=1).export(tmp_path / "out")
    x, y = torch.randn(5, 6), torch.randn(6, 5)
    for got, want in zip(call(directory, "model", [x.numpy(), y.numpy()]), joined(x, y), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-5)
    run(["cc", *STRICT, "-O1", "-march=native", "-fopenmp-simd", "-c", "model.c"], directory)


class Rows(torch.nn.Module):
    """As many rows of a table as there are words, and a mask made of their number."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(9, 6))

    def forward(self, x: Any) -> Any:
        x = x + self.table[: x.shape[0]]
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


def test_sizes_that_vary_are_those_of_the_example(tmp_path: Path) -> None:
    model = Rows()
    shapes = {"x": {0: torch.export.Dim("words", min=2, max=9)}}
    directory = trace(model, (torch.randn(7, 6),), threads=1, dynamic_shapes=shapes).export(tmp_path / "out")
    x = torch.randn(7, 6)
    (got,) = call(directory, "model", [x.numpy()])
    np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_random_numbers_are_not_exported(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"aten.rand.*stay with PyTorch"):
        trace(lambda x: torch.exp(x) + torch.rand(4), (torch.randn(4),)).export(tmp_path / "out")


def test_sums_of_nothing(tmp_path: Path) -> None:
    def sums(x: Any) -> Any:
        return torch.softmax(x, dim=-1).sum(-1) + 1

    x = torch.randn(5, 0)
    directory = trace(sums, (x,), threads=1).export(tmp_path / "out")
    (got,) = call(directory, "model", [x.numpy()])
    np.testing.assert_array_equal(got, np.ones(5))


def test_what_pytorch_runs_cannot_be_exported(tmp_path: Path) -> None:
    class Sorted(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.relu(torch.sort(torch.relu(x)).values)

    with pytest.raises(TraceError, match=r"aten.sort.*stay with PyTorch"):
        trace(Sorted(), (torch.randn(4, 5),)).export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_inputs_of_whole_numbers_cannot_be_exported(tmp_path: Path) -> None:
    def scaled(x: Any, n: Any) -> Any:
        return x * n

    with pytest.raises(TraceError, match="is int64, so that"):
        trace(scaled, (torch.randn(4), torch.arange(4))).export(tmp_path / "out")
