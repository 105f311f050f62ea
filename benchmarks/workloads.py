"""The workloads: a table of what is computed, at which shapes, by whom.

Every component is a file of 𝚒 text under ``components/``, written as a user would: naively, without a schedule. The
same over another library's operations is in ``formulas.py``, and ``hand_picked.py`` has what an expert would call
in PyTorch or NumPy instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import formulas

COMPONENTS = Path(__file__).parent / "components"

Shape = tuple[int, ...]
Floats = np.ndarray[Any, np.dtype[np.float32]]
Formula = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Input:
    """One argument: normally distributed.

    Args:
        shape: its extents.
        deviation: its standard deviation.
        positive: |x| + 1 instead of x, for a divisor.
        constant: a weight, which may be prepared once, outside the call.
    """

    shape: Shape
    deviation: float = 1.0
    positive: bool = False
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """One row of the table.

    Args:
        name: its number in the table of targets, and what sets it apart.
        component: a file under ``components/``, without its suffix.
        inputs: one per input of the component.
        formula: the same over ``ops``, the operations of an array library.
        work: how many elementary operations it takes at least, by the name of their rate in a machine description.
        targets: best peer's time ÷ ours to reach, at one thread and at two.
        small: shapes for a quick check of the result.
        ranked: shapes at which schedules are ranked, where the full ones take too long.
        rules: risky rules that ours may use, because the best peer's call computes the same with the same rounding.
        title: what is computed, in a few words, for tables.
        source: its 𝚒 text, if it has no file.
    """

    name: str
    component: str
    inputs: tuple[Input, ...]
    formula: Formula
    work: Mapping[str, float]
    targets: tuple[float, float]
    small: tuple[Shape, ...]
    ranked: tuple[Shape, ...] | None = None
    rules: tuple[str, ...] = ()
    title: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """The component, as 𝚒 text."""
        return self.source or (COMPONENTS / f"{self.component}.i").read_text(encoding="utf-8")

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Of the inputs."""
        return tuple(argument.shape for argument in self.inputs)

    @property
    def constants(self) -> tuple[str, ...]:
        """The names of the inputs that are weights."""
        return tuple(f"in{k}" for k, argument in enumerate(self.inputs) if argument.constant)

    @property
    def ranking_shapes(self) -> tuple[Shape, ...]:
        """Of the inputs, for ranking."""
        return self.shapes if self.ranked is None else self.ranked

    def arrays(self, shapes: Sequence[Shape] | None = None, seed: int = 0) -> list[Floats]:
        """Inputs drawn from ``seed``; at ``shapes``, or the workload's own."""
        rng = np.random.default_rng(seed)
        found = []
        for argument, shape in zip(self.inputs, self.shapes if shapes is None else shapes, strict=True):
            drawn = rng.standard_normal(shape, dtype=np.float32) * np.float32(argument.deviation)
            found.append(np.abs(drawn) + np.float32(1) if argument.positive else drawn)
        return found


def _product(m: int, k: int, n: int, target: float) -> Workload:
    inputs = (Input((m, k)), Input((k, n)))
    small = ((7, 9), (9, 5))
    return Workload(
        f"w1-{m}x{k}x{n}",
        "matmul",
        inputs,
        formulas.matmul,
        {"fma": m * k * n},
        (target, target),
        small,
        title=f"matrix product {m}×{k}×{n}",
    )


HARNESS = (
    (64, 64, 64),
    (200, 200, 200),
    (1000, 1000, 1000),
    (2048, 2048, 2048),
    (64, 2048, 64),
    (2048, 64, 2048),
    (2048, 64, 64),
    (64, 64, 2048),
    (64, 2048, 2048),
    (200, 1000, 200),
    (1000, 200, 1000),
    (2048, 1000, 200),
    (200, 64, 1000),
    (127, 255, 511),
    (333, 777, 129),
    (1023, 1025, 1021),
    (17, 2048, 33),
    (8192, 64, 64),
    (8192, 32, 128),
    (1, 2048, 2048),
)
"""Rows, summed extent and columns of the products of the harness: square, skewed, odd and tall."""


def _attention(heads: int, points: int, width: int) -> tuple[tuple[Input, ...], Mapping[str, float]]:
    shape = (points, width) if heads == 1 else (heads, points, width)
    pairs = heads * points * points
    return (Input(shape),) * 3, {"fma": 2 * pairs * width, "exp": pairs}


def _gaussian_sum(width: int) -> Workload:
    """Squared distances are about 1, so that no kernel value is lost to underflow.

    ``torch.cdist`` expands the squares for more than 25 points; in few dimensions that saves nothing.
    """
    count = 8192
    points = Input((count, width), 1 / math.sqrt(2 * width))
    return Workload(
        f"w11-gaussian-{width}",
        "gaussian_sum",
        (points, points, Input((count,))),
        formulas.gaussian_sum,
        {"fma": count * count * (width + 1), "exp": count * count},
        (3.0, 3.0),
        ((9, width), (11, width), (11,)),
        ((2048, width), (2048, width), (2048,)),
        ("expand-square",) if width > 8 else (),
        title=f"Gaussian kernel sum, 8192 points, {width}-d",
    )


_FULL = 4096
_PIXELS = 16_000_000
_SINGLE, _SINGLE_WORK = _attention(1, 2048, 64)
_HEADS, _HEADS_WORK = _attention(8, 1024, 64)

WORKLOADS: tuple[Workload, ...] = (
    _product(1024, 1024, 1024, 0.95),
    *(_product(m, k, n, 0.9) for m, k, n in HARNESS),
    Workload(
        "w2-softmax",
        "softmax",
        (Input((_FULL, _FULL)),),
        formulas.softmax,
        {"exp": _FULL**2, "add": 2 * _FULL**2, "mul": _FULL**2},
        (1.2, 1.0),
        ((9, 13),),
        ((1024, 4096),),
        title="softmax of rows, 4096²",
    ),
    Workload(
        "w3-attention",
        "attention",
        _SINGLE,
        formulas.attention,
        _SINGLE_WORK,
        (1.0, 1.0),
        ((9, 5), (11, 5), (11, 5)),
        ((1024, 64),) * 3,
        title="attention 2048×64",
    ),
    Workload(
        "w3-heads",
        "attention_heads",
        _HEADS,
        formulas.attention,
        _HEADS_WORK,
        (1.0, 1.0),
        ((2, 9, 5), (2, 11, 5), (2, 11, 5)),
        ((4, 512, 64),) * 3,
        title="attention, 8 heads of 1024×64",
    ),
    Workload(
        "w3-softcap",
        "attention_softcap",
        (*_SINGLE[:2], Input((2048, 2048)), _SINGLE[2]),
        formulas.attention_softcap,
        {**_SINGLE_WORK, "exp": 2 * 2048**2, "div": 2048**2},
        (1.5, 1.5),
        ((9, 5), (11, 5), (9, 11), (11, 5)),
        ((1024, 64), (1024, 64), (1024, 1024), (1024, 64)),
        title="attention with scale, bias, soft-cap",
    ),
    Workload(
        "w4-mlp",
        "mlp",
        (
            Input((256, 1024)),
            Input((1024, 4096), 1 / 32, constant=True),
            Input((4096,), constant=True),
            Input((4096, 1024), 1 / 64, constant=True),
            Input((1024,), constant=True),
        ),
        formulas.mlp,
        {"fma": 2 * 256 * 1024 * 4096},
        (0.95, 0.95),
        ((5, 7), (7, 9), (9,), (9, 6), (6,)),
        ((128, 512), (512, 2048), (2048,), (2048, 512), (512,)),
        title="MLP 256: 1024→4096→1024",
    ),
    Workload(
        "w5-layernorm",
        "layernorm_linear",
        (
            Input((4096, 1024)),
            Input((1024,), constant=True),
            Input((1024,), constant=True),
            Input((1024, 1024), 1 / 32, constant=True),
        ),
        formulas.layernorm_linear,
        {"fma": 4096 * 1024 * 1024},
        (1.05, 1.05),
        ((5, 1024), (1024,), (1024,), (1024, 6)),
        ((512, 1024), (1024,), (1024,), (1024, 1024)),
        title="layer norm, linear, 4096×1024",
    ),
    Workload(
        "w6-pointwise",
        "pointwise",
        (*(Input((_PIXELS,)),) * 3, Input((_PIXELS,), positive=True)),
        formulas.pointwise,
        {"fma": _PIXELS, "div": _PIXELS, "exp": _PIXELS},
        (1.4, 1.4),
        ((37,),) * 4,
        ((4_000_000,),) * 4,
        title="exp((a·b+c)/d), 16 M",
    ),
    Workload(
        "w7-chain",
        "chain",
        (*(Input((1024, 1024), 1 / 32),) * 4, Input((1024,))),
        formulas.chain,
        {"fma": 4 * 1024**2},
        (50.0, 50.0),
        (*((7, 7),) * 4, (7,)),
        title="A·B·C·D·x, 1024²",
    ),
    Workload(
        "w9-swiglu",
        "swiglu",
        (
            Input((512, 1024)),
            Input((1024,), constant=True),
            Input((1024, 2816), 1 / 32, constant=True),
            Input((1024, 2816), 1 / 32, constant=True),
            Input((2816, 1024), 1 / 53, constant=True),
        ),
        formulas.swiglu,
        {"fma": 3 * 512 * 1024 * 2816, "exp": 512 * 2816, "div": 512 * 2816},
        (1.0, 1.0),
        ((5, 1024), (1024,), (1024, 6), (1024, 6), (6, 7)),
        ((64, 1024), (1024,), (1024, 1408), (1024, 1408), (1408, 1024)),
        title="RMSNorm, SwiGLU 512×1024×2816",
    ),
    Workload(
        "w10-linear-logsumexp",
        "linear_logsumexp",
        (Input((2048, 512)), Input((16384, 512), 1 / 16, constant=True)),
        formulas.linear_logsumexp,
        {"fma": 2048 * 512 * 16384, "exp": 2048 * 16384},
        (1.5, 1.5),
        ((5, 7), (11, 7)),
        ((256, 512), (4096, 512)),
        title="log-sum-exp of x·wᵀ, 16384 classes",
    ),
    _gaussian_sum(3),
    _gaussian_sum(64),
    Workload(
        "w12-nearest",
        "nearest",
        (Input((8192, 16)), Input((8192, 16))),
        formulas.nearest,
        {"fma": 8192 * 8192 * 16},
        (3.0, 3.0),
        ((9, 16), (11, 16)),
        ((2048, 16), (2048, 16)),
        title="nearest distance, 8192², 16-d",
    ),
    Workload(
        "w13-decode",
        "decode",
        (Input((32, 64)), Input((32, 8192, 64)), Input((32, 8192, 64))),
        formulas.decode,
        {"fma": 2 * 32 * 8192 * 64, "exp": 32 * 8192},
        (1.0, 1.0),
        ((3, 5), (3, 11, 5), (3, 11, 5)),
        title="decode attention, 32 heads, 8192 keys",
    ),
    Workload(
        "w14-variance",
        "variance",
        (Input((_FULL, _FULL)),),
        formulas.variance,
        {"add": 2 * _FULL**2, "fma": _FULL**2},
        (1.3, 1.3),
        ((5, _FULL),),
        ((1024, _FULL),),
        title="variance of rows, 4096²",
    ),
    Workload(
        "w14-logsumexp",
        "logsumexp",
        (Input((_FULL, _FULL)),),
        formulas.logsumexp,
        {"exp": _FULL**2, "add": 2 * _FULL**2},
        (1.3, 1.3),
        ((9, 13),),
        ((1024, _FULL),),
        title="log-sum-exp of rows, 4096²",
    ),
)

HELD_OUT = ("w12-nearest", "w13-decode", "w14-variance")
"""Kept from whoever tunes the cost model; ``ranking`` reports them apart."""


def chosen(prefixes: Sequence[str], among: Sequence[Workload] = WORKLOADS) -> list[Workload]:
    """The workloads whose names begin with one of ``prefixes``; all if there are none.

    Raises:
        SystemExit: a prefix that no name begins with.
    """
    for prefix in prefixes:
        if not any(w.name.startswith(prefix) for w in among):
            raise SystemExit(f"no workload {prefix!r}; there are: {', '.join(w.name for w in among)}")
    return [w for w in among if not prefixes or any(w.name.startswith(p) for p in prefixes)]
