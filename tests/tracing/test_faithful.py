"""Programs that are easy to get wrong: the same results as eager's, or one clear reason."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is optional")

from ilang_eq.errors import TraceError  # noqa: E402
from tests.tracing.interpreting import assert_close, interpreted  # noqa: E402

nn, F = torch.nn, torch.nn.functional
X = torch.randn(3, 4)
MASK = torch.tensor([[True, False, True, True], [False, False, False, False], [True, True, False, True]])
Pair = namedtuple("Pair", "first second")


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words: Any) -> Any:
        return self.head(self.words(words))


class Parts(nn.Module):
    """Parameters and buffers that are transposed, scalar, shared or returned."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.randn(8, 4)[::2].T), nn.Parameter(torch.tensor(2.0))
        self.register_buffer("offset", torch.randn(4))
        self.layer = nn.Linear(4, 4)
        self.again = self.layer

    def forward(self, x: Any) -> Any:
        return self.again(self.layer(x @ self.weight)) * self.scale + self.offset, self.offset, self.weight[0]


def in_place(x: Any) -> Any:
    y = x * 2
    y.add_(1).relu_()
    y[0] = 0
    return y


@torch.library.custom_op("ilang_eq_tests::halves", mutates_args=())
def halves(x: torch.Tensor) -> torch.Tensor:
    """An op of a library that is not ATen."""
    return x / 2


@halves.register_fake
def _like(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "tied weights": (Tied(), (torch.tensor([[1, 2, 3]]),)),
    "parameters and buffers": (Parts(), (X,)),
    "normalised weights": (nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), (X,)),
    "batch norm": (nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5)).eval(), (X,)),
    "written in place": (in_place, (X,)),
    "several results": (lambda x: (x + 1, {"a": x.sum(), "b": [x * 2, x.amax()]}), (X,)),
    "inputs returned": (lambda x: (x, x + 1, x), (X,)),
    "views returned": (lambda x: (x.T, x[1:], x.view(2, 6), (x * 2).T, (x * 2)[1:], (x * 2).view(-1)), (X,)),
    "what is no tensor": (lambda x: (None, x.sum(), 3, 2.5, True), (X,)),
    "a tuple with names": (lambda pair: Pair(pair.first + pair.second, pair.first), (Pair(X, X * 2),)),
    "numbers alone": (lambda x: torch.ones(3) * 2, (X,)),
    "the same input twice": (lambda x, y: x * y + y, (X, X)),
    "truth values": (lambda x, m: torch.where(m, x, x * 2) + x * m, (X, MASK)),
    "rows without a key": (lambda x, m: x.masked_fill(m, float("-inf")).softmax(-1), (X, ~MASK)),
    "whole numbers": (lambda x, n: (n + 1, n * 2.5, x * n), (X, torch.arange(4))),
    "float64": (nn.Linear(4, 4).double(), (X.double(),)),
    "bfloat16": (nn.Linear(4, 4).bfloat16(), (X.bfloat16(),)),
    "float16": (nn.Linear(4, 4).half(), (X.half(),)),
    "mixed types": (lambda x: (x.double() * 2).float() + x * x.bfloat16(), (X,)),
    "no rows": (nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU()), (torch.randn(0, 4),)),
    "nothing to sum": (lambda x, y: (x @ y + 1, y.sum(0)), (torch.randn(3, 0), torch.randn(0, 4))),
    "infinities": (lambda x: (x @ x.T, x.sigmoid(), x.exp(), x.softmax(-1)), (torch.tensor([[1.0, -torch.inf, 2.0]]),)),
    "a number from a tensor": (lambda x: x * x.sum().item(), (X,)),
    "other indices": (lambda x: (x.sort(-1), (x * 2).max(-1).values + 1, x[torch.tensor([0, 2])]), (X,)),
    "parts": (lambda x: (sum(part * 2 for part in x.chunk(2, -1)), F.glu(x), torch.cat([x * 2, x], -1) * 3), (X,)),
    "truth values returned": (lambda x: (x > 0, (x > 0) & (x < 1), x.sum() > 9), (X,)),
    "solved": (lambda x: torch.linalg.solve(x @ x.T + torch.eye(3), x) @ torch.linalg.inv(torch.eye(4) * 2), (X,)),
    "another library": (lambda x: halves(x * 2) + 1, (X,)),
    "recurrent": (nn.LSTM(4, 5), (torch.randn(3, 2, 4),)),
}


@pytest.mark.parametrize("name", CASES)
def test_as_eager(name: str) -> None:
    function, args = CASES[name]
    with torch.no_grad():
        found, right = interpreted(function, *args)(*args), function(*args)
    exact = any(leaf.dtype in (torch.bfloat16, torch.float16) for leaf in args if isinstance(leaf, torch.Tensor))
    tolerance = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-4, "atol": 1e-5}
    assert_close(found, right, **tolerance, equal_nan=True)


@pytest.mark.parametrize("name", ["float64", "bfloat16", "float16"])
def test_other_types_stay_with_pytorch(name: str) -> None:
    function, args = CASES[name]
    traced = interpreted(function, *args)
    assert not traced.regions
    assert all(f"makes {name}, not float32" in row.reason for row in traced.coverage.rows)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.add_(1), "the model changes"),
        (lambda x: x * 2 if x.sum() > 0 else x, "torch.export cannot trace"),
        (lambda x: x * 1j, "takes a value of type complex"),
    ],
)
def test_what_cannot_be_traced_is_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        interpreted(function, X.clone())
