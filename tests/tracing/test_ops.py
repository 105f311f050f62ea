"""Every row of the tables of ops, against PyTorch, through the float64 interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is optional")

from ilang_eq import trace  # noqa: E402
from ilang_eq.tracing.capture import KEPT  # noqa: E402
from ilang_eq.tracing.table import COMPUTED, NUMBERS, SKIP_NAN, VIEWS  # noqa: E402
from ilang_eq.tracing.traced import Traced  # noqa: E402
from tests.tracing.interpreting import agrees, assert_close, interpreted  # noqa: E402

F = torch.nn.functional
aten = torch.ops.aten


def tensor(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def positive(*shape: int) -> Any:
    return tensor(*shape).abs() + 0.1


X, Y = tensor(3, 4, 6), tensor(3, 4, 6, seed=1)
ROW, COLUMN = tensor(6), tensor(4, 1)
MATRIX, WEIGHT, BIAS = tensor(5, 6), tensor(7, 6), tensor(7)
QUERY, KEY = tensor(2, 4, 5, 8), tensor(2, 4, 7, 8)
MASK = torch.tensor([[True, False, True], [False, True, True]])

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add": (lambda x, y: x + y, (X, Y)),
    "add scaled": (lambda x, y: torch.add(x, y, alpha=3), (X, ROW)),
    "add number": (lambda x: x + 2, (X,)),
    "sub": (lambda x, y: x - y, (X, COLUMN)),
    "rsub": (lambda x: 2 - x, (X,)),
    "rsub op": (lambda x: aten.rsub.Scalar(x, 2.5), (X,)),
    "mul": (lambda x, y: x * y * 0.5, (X, Y)),
    "div": (lambda x, y: x / y / 3, (X, Y)),
    "maximum": (lambda x, y: torch.maximum(x, y) + torch.minimum(x, y), (X, Y)),
    "powers": (lambda x: x**2 + x**3 + x**4 + x**1, (X,)),
    "negative powers": (lambda x: x**-1 + x**-2, (X,)),
    "real powers": (lambda x, y: x**1.5 + x**y, (positive(3, 4), tensor(3, 4, seed=3))),
    "neg": (lambda x: -x, (X,)),
    "exp": (lambda x: x.exp(), (X,)),
    "log": (lambda x: x.log(), (positive(3, 4),)),
    "roots": (lambda x: x.sqrt() + x.rsqrt(), (positive(3, 4),)),
    "reciprocal": (lambda x: x.reciprocal(), (X,)),
    "abs": (lambda x: x.abs(), (X,)),
    "relu": (lambda x: F.relu(x), (X,)),
    "sigmoid": (lambda x: x.sigmoid(), (X,)),
    "silu": (lambda x: F.silu(x), (X,)),
    "tanh": (lambda x: x.tanh(), (X,)),
    "cosh": (lambda x: x.cosh(), (X,)),
    "sign": (lambda x: x.sign() + 2 * (x * 0).sign() + x.sgn(), (X,)),
    "erf": (lambda x: x.erf(), (X,)),
    "gelu": (lambda x: F.gelu(x), (4 * X,)),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), (4 * X,)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=0.1) + x.clamp(max=0.2), (X,)),
    "clamp tensors": (lambda x, y: aten.clamp_min.default(x, 0.1) + aten.clamp_max.default(y, 0.2), (X, Y)),
    "where": (lambda m, x, y: torch.where(m, x, y), (MASK, tensor(2, 3), tensor(2, 3, seed=1))),
    "sum": (lambda x: x.sum(1) * x.sum(), (X,)),
    "extrema": (lambda x: x.amax((0, 2)) - x.amin((0, 2)), (X,)),
    "mean": (lambda x: x.mean((0, 2), keepdim=True) + x.mean(), (X,)),
    "var": (lambda x: x.var(-1, keepdim=True) + x.var((0, 1), correction=0, keepdim=True), (X,)),
    "softmax": (lambda x: x.softmax(1), (X,)),
    "log softmax": (lambda x: x.log_softmax(-1), (X,)),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), (X, ROW, tensor(6, seed=1))),
    "layer norm over two": (lambda x: F.layer_norm(x, (4, 6)), (X,)),
    "group norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (X, tensor(4), tensor(4, seed=1))),
    "batch norm": (
        lambda x, m, v, w: F.batch_norm(x, m, v, w, m) + F.batch_norm(x, m, v),
        (X, tensor(4), positive(4), tensor(4, seed=1)),
    ),
    "rms norm": (lambda x, w: F.rms_norm(x, (6,), w) + F.rms_norm(x, (6,), eps=0.1), (X, ROW)),
    "linear": (lambda x, w, b: F.linear(x, w, b), (X, WEIGHT, BIAS)),
    "mm": (lambda x, y: x @ y.T, (MATRIX, WEIGHT)),
    "mm op": (lambda x, y: torch.mm(x, y), (MATRIX, tensor(6, 2))),
    "gram": (lambda x: x @ x.T, (MATRIX,)),
    "bmm": (lambda x, y: torch.bmm(x, y.transpose(1, 2)), (X, Y)),
    "matmul broadcast": (lambda x, y: torch.matmul(x, y), (tensor(2, 1, 3, 4), tensor(5, 4, 6))),
    "vectors": (lambda x, v: (x @ v) * torch.dot(v, v) + v[:5].sum() * 0, (MATRIX, ROW)),
    "addmm": (lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2), (tensor(5, 2), MATRIX, tensor(6, 2))),
    "baddbmm": (lambda c, x, y: torch.baddbmm(c, x, y), (tensor(3, 4, 2), X, tensor(3, 6, 2))),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->kbi", x, y), (X, tensor(3, 2, 6))),
    "einsum heads": (lambda x, w: torch.einsum("bid,dhk->bhik", x, w), (X, tensor(6, 2, 5))),
    "attention": (F.scaled_dot_product_attention, (QUERY, KEY, KEY)),
    "attention, bias": (F.scaled_dot_product_attention, (QUERY, KEY, KEY, tensor(4, 5, 7))),
    "attention, mask": (F.scaled_dot_product_attention, (QUERY, KEY, KEY, tensor(5, 7) < 1)),
    "attention, hidden": (
        lambda q, k, m: F.scaled_dot_product_attention(q, k, k, m) + F.scaled_dot_product_attention(q, k, k, m.log()),
        (QUERY, KEY, torch.arange(5)[:, None] > torch.arange(7)),
    ),
    "attention, scale": (lambda q, k: F.scaled_dot_product_attention(q, k, k, scale=0.3), (QUERY, KEY)),
    "attention, grouped": (
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        (QUERY, tensor(2, 2, 7, 8)),
    ),
    "reshapes": (lambda x: (x.reshape(3, 4, 2, 3).permute(2, 0, 1, 3) * 2).flatten(1, 2), (X,)),
    "merge": (lambda x: x.transpose(1, 2).reshape(3, 24) + 1, (X,)),
    "unit dimensions": (
        lambda x: (x.unsqueeze(1) * x.unsqueeze(-2)).squeeze() + x[None].squeeze(0).unsqueeze(1),
        (MATRIX,),
    ),
    "expand": (lambda x, y: x.expand(3, 4, 6) * y, (ROW, X)),
    "transposed sum": (lambda x: x + x.T, (tensor(4, 4),)),
    "numbers": (lambda x: (x + torch.full((4, 1), 2.0)) * torch.ones_like(x) - torch.zeros(6), (X,)),
    "elu": (lambda x: F.elu(x, 0.5) + F.selu(x) + F.celu(x, 2.0), (9 * X,)),
    "leaky": (lambda x, w: F.leaky_relu(x, 0.2) + F.prelu(x, w) * F.prelu(x, w[:1]), (X, tensor(4))),
    "softplus": (lambda x: F.softplus(x) + F.softplus(x, 2.0) + F.mish(x) + F.logsigmoid(x), (30 * X,)),
    "hardtanh": (lambda x: F.hardtanh(x) + F.relu6(9 * x), (X,)),
    "other bases": (lambda x: 2**x + x.exp2() + x.abs().log2() + x.abs().log10(), (X,)),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3) + torch.lerp(x, y, ROW), (X, Y)),
    "comparisons": (
        lambda x, y: torch.where((x > 0) & (x <= y), x, y) + x * (x != 1) + (x.ge(y) ^ (x < 0.5)).logical_not().float(),
        (X, Y),
    ),
    "extrema of all": (lambda x: x.max() - x.min() + x.max(-1).values - x.min(0).values.amax(), (X,)),
    "product": (lambda x: x.prod(-1) + x.prod(), (X,)),
    "log sum exp": (lambda x: x.logsumexp(-1) + x.logsumexp((0, 2), keepdim=True).squeeze(-1), (90 * X,)),
    "log sum exp of nothing": (lambda x: x.logsumexp(-1), (torch.tensor([[-torch.inf] * 2, [torch.inf, 0], [1, 2]]),)),
    "vector norms": (lambda x: x.norm() + x.norm(1, dim=-1) + torch.linalg.vector_norm(x, float("inf"), dim=-1), (X,)),
    "var and mean": (lambda x: torch.var_mean(x, -1)[0] + torch.var_mean(x, -1)[1], (X,)),
    "vector norms of other orders": (lambda x: x.norm(3, dim=-1) + x.norm(2.5, dim=-1) + x.norm(0.5, dim=-1), (X,)),
    "distances": (lambda x, y: torch.cdist(x, y), (MATRIX, WEIGHT)),
    "distances of other orders": (
        lambda x, y: torch.cdist(x, y, p=1) + torch.cdist(x, y, p=3) + torch.cdist(x, y, p=float("inf")),
        (MATRIX, WEIGHT),
    ),
    "instance norm": (lambda x, w: F.instance_norm(x, weight=w, bias=w), (X, tensor(4))),
    "addmv": (lambda x, y, v: torch.addmv(v, x, y, beta=0.5), (MATRIX, ROW, tensor(5))),
    "diagonal": (lambda x: torch.einsum("bii->bi", x) + torch.einsum("bii->b", x)[:, None], (tensor(3, 4, 4),)),
    "attention, grouped, masks": (
        lambda q, k, m, n: (
            F.scaled_dot_product_attention(q, k, k, m, enable_gqa=True)
            + F.scaled_dot_product_attention(q, k, k, n, enable_gqa=True)
        ),
        (QUERY, tensor(2, 2, 7, 8), tensor(2, 4, 5, 7), tensor(2, 1, 5, 7) < 1),
    ),
    "dropout": (lambda x: F.dropout(x, 0.5, training=False).clone() * 2, (X,)),
}


def every(cases: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """All cases in one function: tracing each by itself takes a minute."""
    return {name: CASES[name][0](*args) for name, args in cases.items()}


ARGS = {name: args for name, (_, args) in CASES.items()}


@pytest.fixture(scope="module")
def traced() -> Traced:
    return interpreted(every, ARGS)


@pytest.fixture(scope="module")
def results(traced: Traced) -> dict[str, Any]:
    return traced(ARGS)


@pytest.mark.parametrize("name", CASES)
def test_op(name: str, results: dict[str, Any]) -> None:
    function, args = CASES[name]
    assert_close(results[name], function(*args))


SKIPPING = {
    "relu": ("relu.default",),
    "maximum": ("maximum.default", "minimum.default"),
    "clamp": ("clamp.default", "clamp.Tensor"),
    "clamp tensors": ("clamp_min.default", "clamp_max.default"),
    "extrema": ("amax.default", "amin.default"),
    "extrema of all": ("max.default", "max.dim", "min.default", "min.dim"),
    "elu": ("elu.default", "celu.default", "selu.default"),
    "leaky": ("leaky_relu.default", "prelu.default"),
    "hardtanh": ("hardtanh.default",),
    "where": ("where.self",),
}
"""The cases that skip NaN, and what in them does."""


def spoilt(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """``args`` with a NaN in the first tensor of numbers."""
    first = next(k for k, arg in enumerate(args) if arg.is_floating_point())
    with_nan = args[first].clone()
    with_nan.view(-1)[0] = torch.nan
    return (*args[:first], with_nan, *args[first + 1 :])


def test_nan_is_passed_on_but_by_ops_that_say_so(traced: Traced) -> None:
    args = {name: spoilt(given) for name, given in ARGS.items()}
    results = traced(args)
    # PyTorch's attention itself may lose it
    names = [name for name in CASES if "attention" not in name]
    differing = {n for n in names if not torch.equal(results[n].isnan(), CASES[n][0](*args[n]).isnan())}
    assert differing == SKIPPING.keys()
    assert {f"aten.{op}" for ops in SKIPPING.values() for op in ops} == SKIP_NAN


def test_coverage_tells_what_skips_nan() -> None:
    told = str(interpreted(lambda x: F.relu(x) + F.relu(-x).amax(), X).coverage)
    assert told.endswith("NaN is skipped, and not passed on, by aten.amax.default (1), aten.relu.default (2)")
    assert "NaN" not in str(interpreted(lambda x: x.softmax(-1), X).coverage)


class Ends(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x.cosh(), x.sign()


def test_cosh_and_sign_at_the_ends() -> None:
    """The kernels, in float32: cosh overflows no sooner than its value, and the sign of NaN is 0."""
    ends = torch.tensor([-torch.inf, -100, -89.4, -1e-4, -0.0, 0, 1e-30, 3, 89.4, 89.5, torch.inf, torch.nan])
    x = torch.cat([ends, torch.linspace(-89.4, 89.4, 1001)])
    cosh, sign = trace(Ends(), (x,), strict=True)(x)
    torch.testing.assert_close(cosh, x.double().cosh().float(), rtol=1e-6, atol=0, equal_nan=True)
    torch.testing.assert_close(sign, x.sign(), rtol=0, atol=0)


def test_nothing_is_left_to_pytorch(traced: Traced) -> None:
    assert {row.op for row in traced.coverage.rows} == {"aten.slice.Tensor"}


def test_one_op_by_itself() -> None:
    function, args = CASES["attention"]
    assert len(agrees(function, *args).regions) == 1


def test_every_op_in_the_tables_exists() -> None:
    for name in [*COMPUTED, *VIEWS, *NUMBERS]:
        if name != "getitem":
            _, op, overload = name.split(".")
            assert overload in getattr(aten, op).overloads()


def test_ops_that_are_kept_whole_are_in_the_tables() -> None:
    assert {str(op) for op in KEPT} <= COMPUTED.keys()
